# What a user does in the container: run by test_image.py on the read-only root, as the image's user.
set -eu
printf '{"id":"a","text":"rain floods the town"}\n{"id":"b","text":"voters elect a parliament"}\n' > /tmp/posts.jsonl
linker index build /tmp/posts.jsonl --out /data/news >&2
"$@" > /tmp/address 2> /tmp/log &
server=$!
tries=0
until [ -s /tmp/address ]; do
  tries=$((tries + 1))
  [ "$tries" -lt 600 ] && kill -0 "$server" || { cat /tmp/log >&2; exit 1; }
  sleep 0.1
done
python - <<'PYTHON'
import json, os
from urllib.error import HTTPError
from urllib.request import Request, urlopen

report = {"uid": os.getuid()}
for path in ("/opt/linker/x", "/etc/x", "/data/x", "/tmp/x"):
    try:
        open(path, "w").close()
    except OSError as e:
        report[path] = e.strerror
    else:
        report[path] = "written"
def search(token):
    body = json.dumps({"text": "floods"}).encode()
    headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
    try:
        with urlopen(Request("http://127.0.0.1:8000/v1/search", body, headers)) as answer:
            return [hit["id"] for hit in json.load(answer)["results"][0]["hits"]]
    except HTTPError as e:
        return e.code
report["stranger"] = search("not the token, but long enough")
report["search"] = search(open("/data/.tokens").read().split()[0])
print(json.dumps(report), flush=True)
PYTHON
eval "$HEALTH"
kill -TERM "$server"
wait "$server"
