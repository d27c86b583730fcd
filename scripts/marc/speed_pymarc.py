"""ISO 2709 to MARCXML the way pymarc does it, for scripts/marc/speed.sh."""

import sys

import pymarc

with open(sys.argv[1], "rb") as source:
    writer = pymarc.XMLWriter(sys.stdout.buffer)
    for record in pymarc.MARCReader(source, to_unicode=True, force_utf8=True):
        writer.write(record)
    writer.close(close_fh=False)
