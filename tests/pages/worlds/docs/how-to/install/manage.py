import sys

print("System check identified no issues:", *sys.argv[1:])
