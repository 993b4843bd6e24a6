"""A process that says that it drives a robot, and then gives no sign of life."""

import sys
import time
from multiprocessing.connection import Connection

requests = Connection(int(sys.argv[2]))
requests.send("")
requests.recv()
requests.send("")
time.sleep(600)
