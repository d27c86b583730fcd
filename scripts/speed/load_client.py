"""Downloads every bib of a Sierra and parses its JSON, and does nothing else; for scripts/speed/load.sh.

Standard library alone: one connection, one page after another, each asked for after the last number of the one before.
"""

import base64
import http.client
import json
import sys
import urllib.parse

base_url, key, secret, page_size, fields = sys.argv[1:]
base = urllib.parse.urlsplit(base_url)
# http.client opens the connection anew when the server has closed it: Sierra takes a hundred requests on each.
connection = http.client.HTTPConnection(base.netloc)


def ask(method, path, headers, body=None):
    connection.request(method, base.path + path, body, {"Accept": "application/json", **headers})
    response = connection.getresponse()
    return response.status, response.read()


login = base64.b64encode(f"{key}:{secret}".encode()).decode()
status, body = ask("POST", "/token", {"Authorization": f"Basic {login}", "Content-Type": "application/x-www-form-urlencoded"},
                   "grant_type=client_credentials")
assert status == 200, body
bearer = {"Authorization": "Bearer " + json.loads(body)["access_token"]}

count, after = 0, 0
while True:
    query = urllib.parse.urlencode({"id": f"[{after + 1},]", "limit": page_size, "deleted": "false", "fields": fields})
    status, body = ask("GET", "/bibs?" + query, bearer)
    if status == 404:
        break
    assert status == 200, body
    entries = json.loads(body)["entries"]
    if not entries:
        break
    count += len(entries)
    after = int(entries[-1]["id"])
print(count)
