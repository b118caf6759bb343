# Prints the files of all modules that the script in argv[1] imports, and of the
# modules that Python itself may import later, each followed by a NUL. Modules in the
# folder argv[2], if there is one, are preferred to installed ones. Before all, it prints
# the folder in which Python looks for additional modules.
import runpy
import site
import sys

import encodings.ascii
import encodings.idna
import encodings.latin_1
import encodings.utf_8

sys.path[:0] = sys.argv[2:]
runpy.run_path(sys.argv[1], run_name="imports")
sys.stdout.write(site.getsitepackages()[0] + "\0")
for path in sorted({getattr(m, "__file__", None) or "" for m in sys.modules.values()}):
    if path.startswith("/"):
        sys.stdout.write(path + "\0")
