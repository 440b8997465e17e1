"""The table of scenarios that wait: servers, clients, event loops, threads. What they talk to is not recorded."""

from tests.real.peer import PORT, POSTGRES, REDIS, SITE, Peer
from tests.real.scenario import script

# Neither Python nor an extension module: such a library is called by ctypes, and reaches the outside by itself.
_LIBRARIES = "C libraries that ctypes calls"

_SERVERS = (
    script(
        "site_flask",
        "Flask",
        "a threaded development server answers 500 requests of 8 clients; ended by its own SIGINT",
        "the server has ended",
        arguments=(PORT,),
        peer=Peer("ask_http", ("500", "end"), is_client=True),
    ),
    script(
        "site_django",
        "Django",
        "a threaded development server with a model answers 500 requests of 8 clients; ended by SIGINT from outside",
        "the server has ended",
        arguments=(PORT,),
        peer=Peer("ask_http", ("500", "signal"), is_client=True),
    ),
    script(
        "sockets_aiohttp",
        "aiohttp",
        "a server with 6 websockets of 50 messages each, HTTP and a thread pool beside",
        "'text': 312",
        arguments=(PORT,),
        peer=Peer("talk_websocket", ("50",), is_client=True),
    ),
    script(
        "sockets_uvicorn",
        "uvicorn",
        "an ASGI server with 6 websockets of 50 messages each, HTTP and a thread pool beside",
        "'text': 312",
        arguments=(PORT,),
        peer=Peer("talk_websocket", ("50",), is_client=True),
    ),
)

_CLIENTS = (
    script(
        "fetch_requests",
        "requests",
        "a session with cookies, an upload, streaming and a timeout; four threads",
        "everything was fetched",
        arguments=(PORT,),
        peer=SITE,
    ),
    script(
        "fetch_urllib3",
        "urllib3",
        "a pool that five threads share, retries, a timeout; urllib.request, http.client",
        "everything was fetched",
        arguments=(PORT,),
        peer=SITE,
    ),
    script(
        "fetch_httpx",
        "httpx",
        "a client, then fifty requests at once on asyncio, some of them too slow",
        "everything was fetched",
        arguments=(PORT,),
        peer=SITE,
    ),
    script(
        "crawl_futures",
        None,
        "a crawler of a site of 60 pages on eight threads of concurrent.futures",
        "60 pages, broken: [('/missing', 404)]",
        arguments=(PORT,),
        peer=SITE,
    ),
    script(
        "keys_redis",
        "redis",
        "a real Redis: pipelines, watches, subscribers and blocking pops in seven threads, asyncio",
        "the server was used",
        arguments=(PORT,),
        peer=REDIS,
    ),
    script(
        "rows_psycopg",
        "psycopg",
        "a real PostgreSQL; pure Python, which calls libpq by ctypes",
        "the server was used",
        arguments=(PORT,),
        env={"PSYCOPG_IMPL": "python"},
        peer=POSTGRES,
        waits_for=_LIBRARIES,
    ),
    script(
        "rows_pg8000",
        "pg8000",
        "a real PostgreSQL, its protocol in Python; three threads change one row, a notification",
        "the server was used",
        arguments=(PORT,),
        peer=POSTGRES,
    ),
)

_LOOPS_AND_THREADS = (
    script(
        "nursery_trio",
        "trio",
        "nurseries, channels, cancellation, threads, sockets, a signal, a process",
        "SIGUSR1",
    ),
    script(
        "tasks_anyio",
        "anyio",
        "the same program on asyncio and on trio: sockets, threads, limits; a portal",
        "42 8",
    ),
    script(
        "celery_memory",
        "celery",
        "a worker with four threads, its broker in memory: chains, a chord, retries",
        "the worker has ended",
        arguments=("memory",),
        program="tasks_celery",
    ),
    script(
        "celery_folder",
        "celery",
        "a worker with four threads, its broker a folder that a client has filled",
        "the worker has ended",
        arguments=("filesystem",),
        program="tasks_celery",
    ),
    script(
        "bars_threads",
        "tqdm",
        "bars in threads, its monitor thread, thread_map",
        "all bars are full",
    ),
    script(
        "watch_polling",
        "watchdog",
        "an observer of a folder, by polling it",
        "the observer has ended",
        arguments=("polling",),
        program="watch_watchdog",
    ),
    script(
        "watch_inotify",
        "watchdog",
        "an observer of a folder, by inotify, which it calls by ctypes",
        "the observer has ended",
        arguments=("inotify",),
        program="watch_watchdog",
    ),
)

LANES = (*_SERVERS, *_CLIENTS, *_LOOPS_AND_THREADS)
