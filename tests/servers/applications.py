"""The same small application in each framework: `/` answers, `/boom` raises, `/stream` sends three pieces."""

FLASK = """
from flask import Flask
from replaydbg.web import WSGIMiddleware

app = Flask(__name__)

@app.get("/")
def index():
    return "ok"

@app.get("/boom")
def boom():
    orders = {"total": 0}
    return str(1 / orders["total"])

@app.get("/stream")
def stream():
    return (piece for piece in ("a", "b", "c"))

app.wsgi_app = WSGIMiddleware(app.wsgi_app)
"""

FASTAPI = """
from fastapi import FastAPI, WebSocket
from fastapi.responses import PlainTextResponse, StreamingResponse
from replaydbg.web import ASGIMiddleware

app = FastAPI()
app.add_middleware(ASGIMiddleware)

@app.get("/", response_class=PlainTextResponse)
async def index():
    return "ok"

@app.get("/boom")
def boom():
    orders = {"total": 0}
    return str(1 / orders["total"])

@app.get("/stream")
async def stream():
    async def pieces():
        for piece in ("a", "b", "c"):
            yield piece
    return StreamingResponse(pieces())
"""

_DJANGO = """
import django
from django.conf import settings
from django.http import HttpResponse, StreamingHttpResponse
from django.urls import path

settings.configure(SECRET_KEY="for this test", ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], MIDDLEWARE=[])

def index(request):
    return HttpResponse("ok")

def boom(request):
    orders = {"total": 0}
    return HttpResponse(1 / orders["total"])

def stream(request):
    return StreamingHttpResponse(iter(["a", "b", "c"]))

urlpatterns = [path("", index), path("boom", boom), path("stream", stream)]
"""

DJANGO_WSGI = f"""{_DJANGO}
from django.core.wsgi import get_wsgi_application
from replaydbg.web import WSGIMiddleware
app = WSGIMiddleware(get_wsgi_application())
"""

DJANGO_ASGI = f"""{_DJANGO}
from django.core.asgi import get_asgi_application
from replaydbg.web import ASGIMiddleware
app = ASGIMiddleware(get_asgi_application())
"""
