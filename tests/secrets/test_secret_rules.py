"""Which texts are secrets, as settings, programs and protocols write them, and which are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from replaydbg.secrets.secret_names import is_secret_name
from replaydbg.secrets.secret_parts import with_parts
from replaydbg.secrets.secret_patterns import RULES
from replaydbg.secrets.secret_rules import secrets_in
from replaydbg.secrets.secret_values import is_secret_value

SECRETS = {
    "DB_PASSWORD=correcthorse\n": "correcthorse",
    "export API_TOKEN=abcdefgh\nexport A=b": "abcdefgh",
    "password: changeme\n": "changeme",
    "db:\n    password: Pa$$w{0}rd,x\n": "Pa$$w{0}rd,x",
    "password   =\tabc123def\n": "abc123def",
    '{"password": "it\'s\\"xyz"}': "it's\\\"xyz",
    "{'password': 'say \"x1\" twice'}": 'say "x1" twice',
    '"{\\"password\\": \\"abc def\\"}"': "abc def",
    "machine a login bob password sesame77\n": "sesame77",
    "machine a\nlogin bob\npassword openses\n": "openses",
    "<db><password>opensesame</password></db>": "opensesame",
    '<property name="password" value="opensesame"/>': "opensesame",
    "Server=a;Uid=x;Pwd=opensesame;": "opensesame",
    "api_keys: [alpha1]": "alpha1",
    'passwords: ["betabeta"]': "betabeta",
    "signing_key = 'abcdefg'": "abcdefg",
    "*2\r\n$4\r\nAUTH\r\n$10\r\nopensesame\r\n": "opensesame",
    "*3\r\n$4\r\nAUTH\r\n$3\r\nbob\r\n$10\r\nopensesame\r\n*1\r\n$4\r\nPING\r\n": "opensesame",
    "AUTH PLAIN AGJvYgBvcGVuc2VzYW1l\r\n": "AGJvYgBvcGVuc2VzYW1l",
    "\x0dauthorization\x0fBearer opensesame\x04host": "opensesame",
    "('Authorization', 'Token opensesame')": "opensesame",
    "Authorization: opensesame\r\n": "opensesame",
    "curl -u bob:opensesame https://host": "opensesame",
    "git clone https://0123456789abcdef0123@host/x": "0123456789abcdef0123",
    "POST /login\r\n\r\nuser=u&password=alice-pw9911": "alice-pw9911",
    "?password=my-secret&user=u": "my-secret",
    "?user=u&pin=1&password=83920174": "83920174",
    "url = postgresql://app:my-secret@db/x": "my-secret",
    "token = 'prod.token.8fj3kd'": "prod.token.8fj3kd",
    "password: EijpGsWXGKmQBMMPBIbhCRBP\n": "EijpGsWXGKmQBMMPBIbhCRBP",
    "aws_secret_access_key = /JalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n": "/JalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
}
NONE = (
    "Authorization: \r\nContent-Length: 42\r\n",
    "No permission -- see authorization schemes)\x03",
    "401\n    (authorization needed).Nr",
    "\x05AUDIT\xda\rAUTHORIZATION\xda\x0eAUTO_INCREMENT\xda\x03AVG",
    "The authorization scheme, like ``basic``",
    "credentials: HTTPBasicCredentials\ntoken: APIKey\n",
    "secret=base64.b64\n",
    "secret=base64.b64encode(x)",
    "login(\n    user=user,\n    password=args.password\n)",
    "login(\n    token=get_token()\n)",
    "password: str\ntoken: SecretStr\ncredentials: Optional[str]\n",
    "PASSWORD=${DB_PASSWORD}\n",
    "    native_token: object\n",
    "values (``native_token: object``), and `secret: memoryview` ones",
    "token: Callable\nsecret: memoryview\n",
    "pass kwarg trio_token=...z0Passed kwarg trio_token",
    "token: optional\n",
    "# The password: see the page on settings\n",
    "tokens = [Token.Keyword, Token.Text]\n",
    "docker run -u 1000:1000 image",
    "PWD=/home/bob\n",
    "?user=u&password=my_password",
    "postgresql://user:db_password@host/x",
    "token = 'access-token'\npassword = 'password2'\nsecret = '/etc/secrets/db'\n",
    "token: 20250101\n",
)


@pytest.mark.parametrize("text", SECRETS)
def test_a_secret_is_found(text: str) -> None:
    found = {each.decode() for each in secrets_in(text.encode())}

    assert SECRETS[text] in found
    assert all(each in SECRETS[text] for each in found)


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_secret(text: str) -> None:
    assert secrets_in(text.encode()) == set()


TELLING = """
PGPASSWORD SSHPASS dbPassword clientSecret FERNET_KEY DB_PW GITHUB_PAT api-key T_1_TOKEN_2 API_KEYS SERVICE_KEY DB_KEY
CLIENT_KEY PRIV_KEY SSH_KEY DB_PASSWORDS DBPASSWORDS JWT HTTP_AUTHORIZATION AUTH_HEADER DB_CREDS
"""
OTHERS = """
PATH BYPASS PWD KEYMAP SSH_AUTH_SOCK PYTHONPATH TOKENIZERS_PARALLELISM KEYBOARD MONKEY KEY KEY_COUNT PUBLIC_KEY GPG_KEY
SSH_HOST_KEYS SORT_KEY MAX_TOKENS TOKEN_LIMIT SECRET_TTL X_HEADER
"""


@pytest.mark.parametrize("name", TELLING.split())
def test_a_name_is_telling(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", OTHERS.split())
def test_a_name_that_is_not(name: str) -> None:
    assert not is_secret_name(name)


def test_under_a_telling_name_nearly_all_is_a_secret() -> None:
    values = """
    /JalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY pi_3MtwBwLkdIwHu7ix28a3tqPa_secret_YrKJUKribcBjcG8HVhfZluoGH Password123
    my-secret alice-pw9911 prod.token.8fj3kd 83920174 opensesame; secret) /+abcdefgh/ijkl
    """
    assert [each for each in values.split() if not is_secret_value(each.encode())] == []
    # Those that would be masked in half of all texts, and what another text has hidden.
    others = "true False none 12345 postgres password 'postgres' ******** xxxxxxxx secret"
    assert [each for each in others.split() if is_secret_value(each.encode())] == []


def test_the_path_of_a_secret_is_none(tmp_path: Path) -> None:
    (tmp_path / "key.pem").touch()

    for path in (tmp_path / "key.pem", tmp_path / "removed.pem", tmp_path):
        assert not is_secret_value(bytes(path))
    assert is_secret_value(bytes(tmp_path / "nowhere" / "key.pem"))
    assert is_secret_value(b"/" + 300 * b"a" + b"/" + 5000 * b"b" + b"\0")


@pytest.mark.parametrize(
    ("secret", "parts"),
    [
        (b"Tr41ling-nl-pw\n", {b"Tr41ling-nl-pw"}),
        (b'"qUoted99pw"', {b"qUoted99pw"}),
        (b'\\"qUoted99pw\\"', {b"qUoted99pw"}),
        (b"Tr41ling-nl-pw\\r\\n", {b"Tr41ling-nl-pw"}),
        (b"Tr41ling-slash\\", {b"Tr41ling-slash\\"}),
        (b"bob:Pa1rPassw9", {b"bob:Pa1rPassw9", b"Pa1rPassw9"}),
        (b"'bob:\"Pa1rPassw9\"'", {b'bob:"Pa1rPassw9', b"Pa1rPassw9"}),
        (b"Bearer abcdef123", {b"Bearer abcdef123", b"abcdef123"}),
        (b"k1-aaaa8888, k2-cccc9999", {b"k1-aaaa8888, k2-cccc9999", b"k1-aaaa8888", b"k2-cccc9999"}),
        (b"correct horse, battery", {b"correct horse, battery"}),
        (b"https://example.org", {b"https://example.org"}),
        (b"bob:postgres", {b"bob:postgres"}),
        (b'"abc12"', {b'"abc12"'}),
    ],
)
def test_the_parts_of_a_secret_are_secrets(secret: bytes, parts: set[bytes]) -> None:
    assert with_parts([secret]) == parts


def test_each_rule_has_a_pattern() -> None:
    for rule in RULES:
        assert rule.pattern.groups >= 0
        assert all(len(each) >= 4 for each in rule.hints), rule.name
