"""A folder that answers slowly and shows files late, as shared folders of clusters do.

    python3 slow_folder.py REAL SHOWN SECONDS      shows REAL as SHOWN, every operation SECONDS late, until it is unmounted
"""
import contextlib
import os
import pathlib
import subprocess
import sys
import time


@contextlib.contextmanager
def mounted(real, shown, seconds):
    """Gives True while SHOWN is there, False where no such folder can be mounted."""
    for folder in (real, shown):
        pathlib.Path(folder).mkdir()
    server = subprocess.Popen(["/usr/bin/python3", "-B", __file__, str(real), str(shown), str(seconds)], stderr=subprocess.DEVNULL)
    while server.poll() is None and not os.path.ismount(shown):
        time.sleep(0.05)
    try:
        yield server.poll() is None
    finally:
        subprocess.run(["umount", "--lazy", str(shown)], stderr=subprocess.DEVNULL)
        server.terminate()
        server.wait()


def serve(real, shown, seconds):
    import fusepy  # only where the folder is served

    class Slow(fusepy.Operations):
        """Every operation is that of the real folder, after a while."""

        def __call__(self, operation, path, *rest):
            time.sleep(seconds)
            return super().__call__(operation, real + path, *rest)

        access = None  # the kernel asks with every step of a path
        chmod, chown, mkdir, mknod = os.chmod, os.chown, os.mkdir, os.mknod
        rmdir, unlink, readlink = os.rmdir, os.unlink, os.readlink

        def getattr(self, path, handle=None):
            found = os.lstat(path)
            return {key: getattr(found, key) for key in ("st_atime", "st_ctime", "st_gid", "st_mode", "st_mtime", "st_nlink", "st_size", "st_uid")}

        def statfs(self, path):
            found = os.statvfs(path)
            return {key: getattr(found, key) for key in ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_favail", "f_ffree", "f_files", "f_flag", "f_frsize", "f_namemax")}

        def readdir(self, path, handle):
            return [".", "..", *os.listdir(path)]

        def open(self, path, flags):
            return os.open(path, flags)

        def create(self, path, mode, info=None):
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, mode)

        def read(self, path, size, offset, handle):
            return os.pread(handle, size, offset)

        def write(self, path, data, offset, handle):
            return os.pwrite(handle, data, offset)

        def truncate(self, path, length, handle=None):
            os.truncate(path, length)

        def rename(self, old, new):
            return os.rename(old, real + new)

        def utimens(self, path, times=None):
            return os.utime(path, times)

        def flush(self, path, handle):
            return os.fsync(handle)

        def fsync(self, path, data_only, handle):
            return os.fsync(handle)

        def release(self, path, handle):
            return os.close(handle)

    # What a node has looked at it may believe for three seconds, so that files of others show late.
    fusepy.FUSE(Slow(), shown, foreground=True, nothreads=False, attr_timeout=3, entry_timeout=3, negative_timeout=3)


if __name__ == "__main__":
    serve(os.path.realpath(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
