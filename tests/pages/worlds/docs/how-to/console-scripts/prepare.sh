# Packages that installed a command: in the environment on PATH, and in one of the project.
mkdir -p bin src tests package
python -m venv --without-pip .venv
printf '#!%s\nimport sys\nprint("All done:", *sys.argv[1:])\n' "$(command -v python)" > bin/black
printf '#!%s\nimport sys\nprint("Flask", *sys.argv[1:])\n' "$PWD/.venv/bin/python" > .venv/bin/flask
chmod +x bin/black .venv/bin/flask
printf 'def test_one():\n    assert 1\n' > tests/test_one.py
printf 'print(1)\n' | tee script.py package/module.py > package/__init__.py
