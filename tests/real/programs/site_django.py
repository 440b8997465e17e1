# mypy: ignore-errors
# ruff: noqa
"""Django's threaded development server: one file, a model on sqlite, a template, a form; SIGINT from outside ends it."""

import os
import random
import sys
import threading

import django
from django.conf import settings
from django.core.management import call_command
from django.db import connection, models, transaction
from django.db.models import Count, F
from django.http import HttpResponse, JsonResponse
from django.template import Context, Template
from django.urls import path

settings.configure(
    DEBUG=True,
    SECRET_KEY=os.urandom(8).hex(),
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["127.0.0.1"],
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": "site.db",
            "OPTIONS": {"timeout": 20, "transaction_mode": "IMMEDIATE"},
        }
    },
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
)
django.setup()


class Visit(models.Model):
    number = models.IntegerField()
    luck = models.FloatField()
    times = models.IntegerField(default=1)

    class Meta:
        app_label = "site"


def page(request, number):
    if request.method == "GET" and number % 5:
        seen = (
            Visit.objects.filter(number=number % 10).values("number").annotate(n=Count("id")).order_by("number").first()
        )
        return HttpResponse(Template("page {{ n }}: {{ seen }}").render(Context({"n": number, "seen": seen})))
    with transaction.atomic():
        visit, made = Visit.objects.get_or_create(number=number % 10, defaults={"luck": random.random()})
        if not made:
            Visit.objects.filter(pk=visit.pk).update(times=F("times") + 1)
    return HttpResponse(f"page {number} {visit.luck:.3f}")


def job(request):
    return JsonResponse({"thread": threading.current_thread().name, "number": random.randrange(100)})


def wrong(request):
    raise KeyError(request.GET.get("key"))


def pid(request):
    return HttpResponse(str(os.getpid()))


urlpatterns = [path("page/<int:number>", page), path("job", job), path("wrong", wrong), path("pid", pid)]

with connection.schema_editor() as editor:
    editor.create_model(Visit)
with connection.cursor() as cursor:
    cursor.execute("PRAGMA journal_mode=WAL")
try:
    call_command("runserver", f"127.0.0.1:{sys.argv[1]}", use_reloader=False, skip_checks=True)
except SystemExit as ending:
    print("runserver exits with", ending.code)
print([(visit.number, visit.times > 0) for visit in Visit.objects.order_by("number")])
print("the server has ended")
