# Sends a tree to a door by webdavclient3 and back, and does there what its users do: door, name, password, folder.
import hashlib
import os
import sys

from webdav3.client import Client

door, user, password, home = sys.argv[1:5]
client = Client(
    {"webdav_hostname": door + "/dav", "webdav_login": user, "webdav_password": password, "webdav_timeout": 60}
)


def tree(top):
    found = {}
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, top)] = hashlib.sha256(file.read()).hexdigest()
    return found


deep = os.path.join(home, "source", "ünï & <x>", "deep")
os.makedirs(deep)
for index in range(20):
    with open(os.path.join(deep, f"f {index} #%é.txt"), "wb") as file:
        file.write(os.urandom(index * 997))
with open(os.path.join(home, "source", "large"), "wb") as file:
    file.write(os.urandom(3_000_000))
source = tree(os.path.join(home, "source"))

assert client.check("/")
client.mkdir("wd3")
client.upload_sync(remote_path="wd3/source", local_path=os.path.join(home, "source"))
client.download_sync(remote_path="wd3/source", local_path=os.path.join(home, "back"))
assert tree(os.path.join(home, "back")) == source
assert client.info("wd3/source/large")["size"] == "3000000"
client.copy(remote_path_from="wd3/source/large", remote_path_to="wd3/copy")
client.move(remote_path_from="wd3/copy", remote_path_to="wd3/moved")
assert client.check("wd3/moved") and not client.check("wd3/copy")
client.set_property("wd3/moved", {"namespace": "urn:x", "name": "colour", "value": "red"})
assert client.get_property("wd3/moved", {"namespace": "urn:x", "name": "colour"}) == "red"
assert int(client.free()) > 0
os.makedirs(os.path.join(home, "pulled"))
client.pull(remote_directory="wd3/source", local_directory=os.path.join(home, "pulled"))
assert tree(os.path.join(home, "pulled")) == source
client.clean("wd3")
assert not client.check("wd3")
print("all as it should be", len(source))
