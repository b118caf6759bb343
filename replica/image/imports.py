# Prints the files of all modules that the script in argv[1] imports, and of the
# modules that Python itself may import later, each followed by a NUL.
import runpy
import sys

import encodings.ascii
import encodings.idna
import encodings.latin_1
import encodings.utf_8

runpy.run_path(sys.argv[1], run_name="imports")
for path in sorted({getattr(m, "__file__", None) or "" for m in sys.modules.values()}):
    if path.startswith("/"):
        sys.stdout.write(path + "\0")
