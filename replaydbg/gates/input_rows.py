"""Rows for clocks, entropy, databases and the network."""

from __future__ import annotations

from replaydbg.gates.row import (
    ARGS,
    BOTH,
    CLOSES,
    COPIES,
    DIGEST,
    FILLS,
    MAKES_NOTHING,
    OPENS,
    PATH,
    SELF,
    STOPS,
    Row,
    rows,
)

CLOCKS: list[Row] = [
    *rows(
        "time",
        """
        time time_ns monotonic monotonic_ns perf_counter perf_counter_ns process_time process_time_ns thread_time
        thread_time_ns
        """,
        MAKES_NOTHING,
    ),
    *rows(
        "time",
        """
        clock_gettime clock_gettime_ns clock_getres clock_settime clock_settime_ns sleep localtime gmtime ctime asctime
        strftime mktime
        """,
    ),
    *rows("time", "tzset", BOTH),
    *rows("time", "pthread_getcpuclockid"),
    *rows("_datetime", "datetime.now", 0, "dt_now"),
    *rows("_datetime", "datetime.utcnow", 0, "dt_utcnow"),
    *rows("_lsprof", "Profiler.getstats", 0, "profile_entries"),
]

ENTROPY: list[Row] = [
    *rows("_random", "Random.seed", 0, "random_seed"),
    *rows("_uuid", "generate_time_safe", 0),
    *rows("_ssl", "RAND_bytes RAND_pseudo_bytes RAND_status"),
]

DATABASES: list[Row] = [
    *rows("_sqlite3", "vfs.fullpath vfs.randomness", ARGS | FILLS, "native"),
    *rows("_sqlite3", "vfs.open vfs.delete vfs.access vfs.sleep vfs.time vfs.lasterror", ARGS, "native"),
    *rows("_sqlite3", "file.read file.control file.shm_map file.shm_lock", ARGS | FILLS, "native"),
    *rows(
        "_sqlite3",
        """
        file.close file.truncate file.sync file.size file.lock file.unlock file.reserved file.sector file.device
        file.shm_unmap
        """,
        ARGS,
        "native",
    ),
    *rows("_sqlite3", "file.write", ARGS | DIGEST, "native"),
]
"""SQLite is recorded at its virtual file system: the library itself runs in replay too."""

NETWORK: list[Row] = [
    *rows(
        "_socket",
        """
        gethostname sethostname getnameinfo getservbyname getservbyport getprotobyname if_nameindex if_nametoindex
        if_indextoname
        """,
    ),
    *rows("_socket", "gethostbyname gethostbyname_ex gethostbyaddr getaddrinfo", ARGS, "takes_host"),
    *rows("_socket", "dup", ARGS | OPENS | COPIES),
    *rows("_socket", "close", ARGS | CLOSES | BOTH, "os_close"),
    *rows("_socket", "socket.__init__", ARGS, "slot"),
    *rows("_socket", "socketpair", ARGS, "socket_pair"),
    *rows("_socket", "socket.close", ARGS | SELF | BOTH),
    *rows(
        "_socket",
        """
        socket.listen socket.getsockname socket.getpeername socket.setsockopt socket.shutdown socket.recv
        socket.recvfrom
        """,
        ARGS | SELF,
    ),
    *rows("_socket", "socket.bind socket.connect socket.connect_ex", ARGS | SELF, "takes_address"),
    *rows("_socket", "socket.getsockopt", ARGS | SELF),
    *rows("_socket", "socket._accept", ARGS | SELF | OPENS, "socket_accept"),
    *rows("_socket", "socket.recv_into socket.recvfrom_into", ARGS | SELF | FILLS, "socket_recv_into", 0),
    *rows("_socket", "socket.send socket.sendall", ARGS | SELF | DIGEST, buffer=0),
    *rows("_socket", "socket.sendto", ARGS | SELF | DIGEST, "takes_address", 0),
    *rows("_socket", "socket.sendmsg socket.sendmsg_afalg", ARGS | SELF | DIGEST, "socket_sendmsg", 0),
    *rows("_socket", "socket.recvmsg", ARGS | SELF, "socket_recvmsg"),
    *rows("_socket", "socket.recvmsg_into", ARGS | SELF | FILLS, "socket_recvmsg_into", 0),
]
"""Bytes that leave the program are digested, bytes that arrive are logged."""

TLS: list[Row] = [
    *rows(
        "_ssl",
        """
        _SSLContext.load_verify_locations _SSLContext.load_dh_params _SSLContext.set_default_verify_paths
        _SSLContext.set_ciphers _SSLContext.set_ecdh_curve _SSLContext._set_alpn_protocols _SSLContext.get_ca_certs
        _SSLContext.get_ciphers _SSLContext.cert_store_stats _SSLContext.session_stats _SSLContext.keylog_filename
        """,
        ARGS | SELF | PATH,
    ),
    *rows("_ssl", "_SSLContext.load_cert_chain", ARGS | SELF | PATH, "ssl_load_cert_chain"),
    *rows("_ssl", "_SSLContext._wrap_socket _SSLContext._wrap_bio", ARGS | SELF, "ssl_wrap"),
    *rows(
        "_ssl",
        """
        _SSLContext.options _SSLContext.minimum_version _SSLContext.maximum_version _SSLContext.security_level
        _SSLContext.verify_flags _SSLContext.num_tickets
        """,
        ARGS | SELF,
        "ssl_setting",
    ),
    *rows("_ssl", "_SSLContext.sni_callback", 0, "ssl_sni_callback"),
    *rows("_ssl", "_SSLContext._msg_callback", 0, "ssl_msg_callback"),
    *rows("_ssl", "_SSLContext.set_psk_client_callback _SSLContext.set_psk_server_callback", 0, STOPS),
    *rows(
        "_ssl",
        """
        _SSLSocket.do_handshake _SSLSocket.pending _SSLSocket.getpeercert _SSLSocket.cipher _SSLSocket.shared_ciphers
        _SSLSocket.compression _SSLSocket.version _SSLSocket.selected_alpn_protocol _SSLSocket.get_channel_binding
        _SSLSocket.session_reused _SSLSocket.verify_client_post_handshake
        """,
        ARGS | SELF,
    ),
    *rows("_ssl", "_SSLSocket.read", ARGS | SELF | FILLS, buffer=1),
    *rows("_ssl", "_SSLSocket.write", ARGS | SELF | DIGEST, buffer=0),
    *rows("_ssl", "_SSLSocket.shutdown", ARGS | SELF, "ssl_shutdown"),
    *rows("_ssl", "_SSLSocket.session", ARGS | SELF, "ssl_session"),
    *rows("_ssl", "_SSLSocket.get_verified_chain _SSLSocket.get_unverified_chain", ARGS | SELF, "ssl_chain"),
    *rows("_ssl", "SSLSession.__eq__", ARGS | SELF, "slot"),
    *rows(
        "_ssl",
        """
        SSLSession.id SSLSession.time SSLSession.timeout SSLSession.ticket_lifetime_hint SSLSession.has_ticket
        """,
        ARGS | SELF,
    ),
    *rows("_ssl", "MemoryBIO.read MemoryBIO.write_eof MemoryBIO.pending MemoryBIO.eof", ARGS | SELF),
    *rows("_ssl", "MemoryBIO.write", ARGS | SELF | DIGEST, buffer=0),
    *rows("_ssl", "_test_decode_cert get_default_verify_paths", ARGS | PATH),
]
"""Outcomes of TLS objects: OpenSSL takes its randomness by itself, so nothing below them could be repeated."""
