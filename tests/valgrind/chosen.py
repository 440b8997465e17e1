"""Which fixtures are run by default: some of each area, those in which the core does most by itself."""

CHOSEN = {
    "clocks": ("datetime_subclass", "functions_keep_their_faces", "many_readings"),
    "entropy": ("c_generator", "seeding"),
    "environment": ("garbage_collection", "variables"),
    "errors": ("exceptions_from_gates", "memory_and_recursion", "tracing_programs"),
    "exit": ("atexit_handlers", "finalizers_close_files", "uncaught_exception"),
    "files": (
        "bad_descriptors",
        "directory_work",
        "open_binary_modes",
        "scandir_entries",
        "stat_family",
        "text_details",
    ),
    "garbage": ("finalizers_amid_crossings",),
    "identity": ("forty_kinds", "ids_as_addresses", "order_of_sets"),
    "imports": ("extension_modules", "packages"),
    "network": ("names", "sockets_of_one_process"),
    "processes": ("fork_and_wait", "run_captured"),
    "signals": ("between_crossings", "handler_inside_read", "in_a_computing_loop"),
    "sqlite": ("blobs_and_backups", "transactions", "write_ahead_log"),
    "steps": ("crossings_everywhere",),
    "startup": ("arguments", "standard_streams"),
    "waiting": ("poll_objects", "select_on_pipes"),
}
"""The names of the programs in each directory of `fixtures/`."""
