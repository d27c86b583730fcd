"""Reads MARC files with other people's parsers and compares them record by record, field by field.

Usage: compare.py [--sorted | --sierra] COUNT REFERENCE FILE...

COUNT is the number of records every file must have, or "any". Files are told apart by their ending: .mrc and .dat are
read by pymarc, .xml by pymarc's SAX reader and, beside it, by ElementTree, .json by json. --sorted compares with the
fields of the reference sorted by tag. --sierra takes the `marc` key of the entries of a Sierra page as the reference and
compares without regard to order.
"""

import json
import sys
import xml.etree.ElementTree as ElementTree
from itertools import zip_longest

import pymarc

NAMESPACE = "{http://www.loc.gov/MARC21/slim}"


def plain(leader, fields):
    """A record as plain values. Lengths belong to files, and coding, counts and map are always written alike."""
    return (leader[5:9] + leader[17:20], fields)


def from_pymarc(record):
    fields = []
    for field in record.fields:
        if field.control_field:
            fields.append((field.tag, field.data))
        else:
            subfields = [(subfield.code, subfield.value) for subfield in field.subfields]
            fields.append((field.tag, "".join(field.indicators), subfields))
    return plain(str(record.leader), fields)


def read_iso2709(path):
    with open(path, "rb") as file:
        reader = pymarc.MARCReader(file, to_unicode=True, utf8_handling="strict", file_encoding="utf-8", force_utf8=True)
        for record in reader:
            if record is None:
                raise SystemExit(f"compare: {path}: pymarc cannot read a record: {reader.current_exception}")
            yield from_pymarc(record)


def read_xml(path):
    """ElementTree, and pymarc's own reader beside it: both must say the same."""
    sax = pymarc.parse_xml_to_array(path, strict=False)
    count = 0
    for _, element in ElementTree.iterparse(path):
        if element.tag.removeprefix(NAMESPACE) != "record":
            continue
        leader, fields = "", []
        for child in element:
            name, text = child.tag.removeprefix(NAMESPACE), child.text or ""
            if name == "leader":
                leader = text
            elif name == "controlfield":
                fields.append((child.get("tag"), text))
            else:
                subfields = [(subfield.get("code"), subfield.text or "") for subfield in child]
                fields.append((child.get("tag"), child.get("ind1") + child.get("ind2"), subfields))
        record = plain(leader, fields)
        other = from_pymarc(sax[count]) if count < len(sax) else None
        # pymarc normalises nothing unless asked to, so this is the same text or an error of one of the two.
        if other != record:
            raise SystemExit(f"compare: {path}: record {count + 1}: two XML parsers disagree:\n{record}\n{other}")
        count += 1
        element.clear()
        yield record
    if count != len(sax):
        raise SystemExit(f"compare: {path}: {count} records by one parser, {len(sax)} by the other")


def from_json(record):
    fields = []
    for field in record["fields"]:
        ((tag, value),) = field.items()
        if isinstance(value, str):
            fields.append((tag, value))
        else:
            subfields = [item for subfield in value["subfields"] for item in subfield.items()]
            fields.append((tag, value["ind1"] + value["ind2"], subfields))
    # Sierra leaves the leader out where it has none; we put the default in and report it.
    return plain(record.get("leader", "00000nam a2200000   4500"), fields)


def read_json(path):
    with open(path, encoding="utf-8") as file:
        records = json.load(file)
    for record in records if isinstance(records, list) else [records]:
        yield from_json(record)


def read_sierra(path):
    with open(path, encoding="utf-8") as file:
        for entry in json.load(file)["entries"]:
            if "marc" in entry:
                yield from_json(entry["marc"])


def read(path):
    if path.endswith(".xml"):
        return read_xml(path)
    return read_json(path) if path.endswith(".json") else read_iso2709(path)


def main(arguments):
    mode = arguments.pop(0) if arguments[0].startswith("--") else ""
    count, reference, *files = arguments
    expected = list(read_sierra(reference) if mode == "--sierra" else read(reference))
    if mode == "--sorted":
        expected = [(leader, sorted(fields, key=lambda field: field[0])) for leader, fields in expected]
    if count != "any" and len(expected) != int(count):
        raise SystemExit(f"compare: {reference}: {len(expected)} records instead of {count}")
    fields = sum(len(fields) for _, fields in expected)
    for path in files:
        for number, (ours, theirs) in enumerate(zip_longest(read(path), expected), 1):
            if mode == "--sierra" and ours and theirs:
                ours, theirs = [(leader, sorted(fields, key=repr)) for leader, fields in (ours, theirs)]
            if ours != theirs:
                raise SystemExit(f"compare: {path}: record {number} differs from {reference}:\n{ours}\n{theirs}")
    names = ", ".join(path.rsplit("/", 1)[-1] for path in files)
    print(f"same as {reference.rsplit('/', 1)[-1]}: {names} ({len(expected)} records, {fields} fields)")


if __name__ == "__main__":
    main(sys.argv[1:])
