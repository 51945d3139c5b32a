# Copies a directory while no process writes to it: each different content and each directory is kept once.
#
# A listing is an array of entries in FOLDER, in an order in which they can be made again: path, mode and
# mtime in seconds. A file also has its size and the name of its content in FOLDER, or the path of an earlier entry
# that is the same file.
import hashlib
import json
import os
import stat
import time

# Clocks of filesystems tick every ten milliseconds at the slowest: a file that was read so long after its
# last write gets another time with the next one.
TICK_NS = 30_000_000
# Written through memory, which sets no time.
MAPPED = "-shm"


class Copies:
    def __init__(self, directory, folder):
        self.directory = directory
        self.folder = folder
        self.known = {}  # what identifies a file that was written long ago: the name of its content
        os.makedirs(folder, exist_ok=True)

    def take(self):
        """Copies the directory, and answers the name of its listing: the same for the same files with the same bytes and modes."""
        entries = []
        self.list_below("", entries, {})
        # Times of files differ from run to run, and are no part of the state.
        same = [{key: entry[key] for key in entry if key != "mtime"} for entry in entries]
        name = hashlib.blake2b(json.dumps(same).encode(), digest_size=16).hexdigest() + ".json"
        self.keep(name, json.dumps(entries).encode())
        return name

    def list_below(self, path, entries, linked):
        with os.scandir(os.path.join(self.directory, path)) as found:
            names = sorted(entry.name for entry in found)
        for name in names:
            below = f"{path}/{name}" if path else name
            status = os.lstat(os.path.join(self.directory, below))
            entry = {"path": below, "mode": stat.S_IMODE(status.st_mode), "mtime": status.st_mtime}
            entries.append(entry)
            if stat.S_ISDIR(status.st_mode):
                self.list_below(below, entries, linked)
            elif not stat.S_ISREG(status.st_mode):
                raise ValueError(f"{below} is neither a file nor a directory")
            elif status.st_ino in linked:
                entry["size"] = status.st_size
                entry["sameAs"] = linked[status.st_ino]
            else:
                linked[status.st_ino] = below
                entry["size"] = status.st_size
                entry["content"] = self.content_of(below, status)

    def content_of(self, path, status):
        same = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if same in self.known:
            return self.known[same]
        is_old = time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > TICK_NS
        with open(os.path.join(self.directory, path), "rb") as file:
            content = file.read()
        name = hashlib.blake2b(content, digest_size=16).hexdigest()
        self.keep(name, content)
        if is_old and not path.endswith(MAPPED):
            self.known[same] = name
        return name

    def keep(self, name, content):
        path = os.path.join(self.folder, name)
        if os.path.exists(path):
            return
        # It gets its name when it is complete: another process may look for it.
        part = f"{path}.{os.getpid()}"
        with open(part, "wb") as file:
            file.write(content)
        os.rename(part, path)
