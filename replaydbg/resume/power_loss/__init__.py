"""After a power cut the disk may lack the last changes that the log has, and may have some that the log lacks.

So a program goes on from the last moment at which the disk has all changes of its open files, and these files are
truncated to their sizes at that moment. By the output commit rule nobody else has seen anything later, if the
program synchronises its files before it lets others know (docs/explanation/design/resume.md, "After a power cut").
"""
