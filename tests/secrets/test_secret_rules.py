"""Which texts are secrets, as settings, programs and protocols write them, and which are not."""

from __future__ import annotations

import pytest

from replaydbg.secrets.secret_rules import RULES, is_secret_name, secrets_in

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
    "curl -u bob:opensesame https://host": "opensesame",
    "git clone https://0123456789abcdef0123@host/x": "0123456789abcdef0123",
}
NONE = (
    "secret=base64.b64\n",
    "secret=base64.b64encode(x)",
    "login(\n    user=user,\n    password=args.password\n)",
    "login(\n    token=get_token()\n)",
    "password: str\ntoken: SecretStr\ncredentials: Optional[str]\n",
    "PASSWORD=${DB_PASSWORD}\n",
    "token: optional\n",
    "# The password: see the page on settings\n",
    "tokens = [Token.Keyword, Token.Text]\n",
    "docker run -u 1000:1000 image",
    "PWD=/home/bob\n",
)


@pytest.mark.parametrize("text", SECRETS)
def test_a_secret_is_found(text: str) -> None:
    found = {each.decode() for each in secrets_in(text.encode())}

    assert SECRETS[text] in found
    assert all(each in SECRETS[text] for each in found)


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_secret(text: str) -> None:
    assert secrets_in(text.encode()) == set()


TELLING = "PGPASSWORD SSHPASS dbPassword clientSecret FERNET_KEY DB_PW GITHUB_PAT api-key T_1_TOKEN_2"
OTHERS = "PATH BYPASS PWD KEYMAP SSH_AUTH_SOCK PYTHONPATH TOKENIZERS_PARALLELISM"


@pytest.mark.parametrize("name", TELLING.split())
def test_a_name_is_telling(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", OTHERS.split())
def test_a_name_that_is_not(name: str) -> None:
    assert not is_secret_name(name)


def test_each_rule_has_a_pattern() -> None:
    for rule in RULES:
        assert rule.pattern.groups >= 0
        assert all(len(each) >= 4 for each in rule.hints), rule.name
