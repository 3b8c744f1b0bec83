"""Backups of one committed generation, taken while writers continue: a folder of hard links or a tar archive."""

import contextlib
import errno
import os
import resource
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import IO, cast

import xxhash

from indexes.disk import writing
from indexes.disk.writing import FileRecord
from indexes.interface import DamagedError, IndexesError
from indexes.store import files as storage
from indexes.store import generations, ownership
from indexes.store import manifest as manifests
from indexes.store.records import Manifest

BLOCK = 1 << 20
MOST_MANIFEST = 64 << 20  # bytes


def backup(directory: Path, out: Path) -> Manifest:
    """Copy the last committed generation to `out`, a new path or an empty folder; return its manifest.

    If the name ends in .tar, `out` is an archive; otherwise it is a folder, which is itself an index and holds hard
    links if it is on the same file system. Every file is compared with its checksum, and `out` appears complete or
    not at all. Raises IndexesError if there is no index, a part of it is on a server or `out` exists, DamagedError.
    """
    with storage.disk_errors(f"backing up {directory}"), _open_generation(directory) as (manifest, files):
        if out.suffix == ".tar":
            with _new_file(out) as target:
                _write_tar(directory, manifest, files, target)
            return manifest
        with _new_folder(out, manifest) as folder:
            for name, file in files.items():
                _check(directory / name, _link_or_copy(directory / name, file, folder / name), manifest, name)
    return manifest


def write_archive(directory: Path, target: IO[bytes]) -> Manifest:
    """Write the last committed generation as a tar archive; return its manifest. Raises the errors of `backup`."""
    with storage.disk_errors(f"backing up {directory}"), _open_generation(directory) as (manifest, files):
        _write_tar(directory, manifest, files, target)
    return manifest


def restore(source: Path, directory: Path) -> Manifest:
    """Create an index from a backup (a folder or an archive) in a new or empty directory; return its manifest.

    The directory appears complete or not at all. Raises IndexesError if there is no backup or the directory is not
    empty, DamagedError if the backup is damaged.
    """
    if source.is_dir():
        return backup(source, directory)
    with storage.disk_errors(f"restoring {source}"):
        if not source.is_file():
            raise IndexesError(
                f"{source} is not a backup: name a folder or a .tar file that `index backup` wrote"
            )
        with source.open("rb") as file:
            return restore_archive(file, directory, str(source))


def restore_archive(source: IO[bytes], directory: Path, name: str) -> Manifest:
    """Create an index from an archive of regular files that its manifest lists; `name` is its name in errors."""
    with storage.disk_errors(f"restoring {name}"):
        try:
            with tarfile.open(fileobj=source, mode="r|") as tar:
                return _unpack(tar, directory, name)
        except tarfile.TarError as e:
            raise DamagedError(f"{name} is damaged, or not a backup: {e}") from None


@contextlib.contextmanager
def _open_generation(directory: Path) -> Iterator[tuple[Manifest, Mapping[str, IO[bytes]]]]:
    manifest = manifests.load(directory)
    generations.refuse_server(manifest, f"{directory} cannot be backed up by copying its files")
    ownership.refuse_links(directory)
    with contextlib.ExitStack() as stack:
        while (files := _open_all(directory, manifest, stack)) is None:
            newer = manifests.load(directory)
            if newer.generation == manifest.generation:
                lines = storage.damage(directory, manifest)
                raise DamagedError(
                    "; ".join(lines) + ": restore the file from a backup, or rebuild the index"
                )
            manifest = newer
        yield manifest, files


def _open_all(
    directory: Path, manifest: Manifest, stack: contextlib.ExitStack
) -> Mapping[str, IO[bytes]] | None:
    _check_names(str(directory), manifest)
    _allow_open_files(len(manifest.files) + 64)
    files: dict[str, IO[bytes]] = {}
    with contextlib.ExitStack() as opened:
        for name in sorted(manifest.files):
            try:
                descriptor = os.open(directory / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            except FileNotFoundError:
                return None
            files[name] = opened.enter_context(os.fdopen(descriptor, "rb"))
        stack.enter_context(opened.pop_all())
    return files


def _allow_open_files(count: int) -> None:
    """Raise the process's soft limit of open files to `count`, if the hard limit allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft != unlimited and soft < count and (hard == unlimited or count <= hard):
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def _check_names(source: str, manifest: Manifest) -> None:
    for name in manifest.files:
        if not (ownership.is_ours(name) or ownership.is_encoder_file(name)):
            raise DamagedError(f"{source} is not a linker index: its manifest lists {name!r}")


def _check(source: Path, copied: FileRecord, manifest: Manifest, name: str) -> None:
    if copied != manifest.files[name]:
        raise DamagedError(f"{source}: content does not match its checksum, so no backup was made")


@contextlib.contextmanager
def _new_folder(out: Path, manifest: Manifest) -> Iterator[Path]:
    """Yield a folder next to `out` that becomes an index and is renamed to `out` if the block succeeds."""
    target = out.resolve()
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise IndexesError(f"{out} already exists: name a folder that does not exist, or an empty one")
    writing.make_folder(target.parent)
    folder = _temporary(target)
    folder.mkdir()
    copied = [name for name in manifest.files if ownership.is_encoder_file(name)]
    try:
        with ownership.claim(folder, copied):
            for name in manifest.files:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
            yield folder
            storage.replace_manifest(folder, manifest)
        folder.rename(target)
    finally:
        # After the renaming, this name no longer exists, and nothing is deleted.
        shutil.rmtree(folder, ignore_errors=True)
    writing.sync(target.parent)


@contextlib.contextmanager
def _new_file(out: Path) -> Iterator[writing.NewFile]:
    """Yield a file next to `out` that is renamed to `out` if the block succeeds."""
    target = out.resolve()
    if target.exists():
        raise IndexesError(f"{out} already exists: choose another name, or delete it")
    writing.make_folder(target.parent)
    part = _temporary(target)
    try:
        with writing.NewFile(part) as file:
            yield file
        writing.sync(part)
        part.rename(target)
    finally:
        part.unlink(missing_ok=True)
    writing.sync(target.parent)


def _temporary(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}.partial")


def _link_or_copy(source: Path, file: IO[bytes], target: Path) -> FileRecord:
    """Hard-link `source`, or copy it from `file`, an open handle of it; return the target's size and checksum."""
    try:
        target.hardlink_to(source)
    except OSError as e:
        if e.errno not in (*writing.NO_LINKS, errno.ENOENT):  # the file was deleted after it was opened
            raise
        return writing.write(target, _blocks(file))
    return writing.record_of(target)


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    while block := file.read(BLOCK):
        yield block


class _HashingReader:
    """Reads a file once and computes the checksum of the data read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.digest = file, xxhash.xxh3_128()

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes, or all remaining ones."""
        data = self._file.read(size)
        self.digest.update(data)
        return data


def _write_tar(
    directory: Path,
    manifest: Manifest,
    files: Mapping[str, IO[bytes]],
    target: IO[bytes] | writing.NewFile,
) -> None:
    data = manifests.dump(manifest)
    with tarfile.open(fileobj=cast("IO[bytes]", target), mode="w|", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(_member(manifests.NAME, len(data)), BytesIO(data))
        for name, file in files.items():
            size, reader = manifest.files[name].bytes, _HashingReader(file)
            if os.fstat(file.fileno()).st_size != size:
                raise DamagedError(f"{directory / name}: its size does not match its record")
            tar.addfile(_member(name, size), reader)
            _check(directory / name, FileRecord(size, reader.digest.hexdigest()), manifest, name)


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o644
    return member


def _unpack(tar: tarfile.TarFile, directory: Path, name: str) -> Manifest:
    manifest = _read_manifest(tar, name)
    _check_names(name, manifest)
    missing = dict(manifest.files)
    with _new_folder(directory, manifest) as folder:
        while member := tar.next():
            record = missing.pop(member.name, None)
            if record is None or not _is_plain(member) or member.size != record.bytes:
                raise DamagedError(
                    f"{name} is not a linker backup: {member.name!r} does not match its manifest"
                )
            content = tar.extractfile(member)
            assert content is not None
            if writing.write(folder / member.name, _blocks(content)) != record:
                raise DamagedError(f"{name} is damaged: {member.name} does not match its checksum")
        if missing:
            raise DamagedError(f"{name} is damaged: {min(missing)} is missing")
    return manifest


def _is_plain(member: tarfile.TarInfo) -> bool:
    return member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse()


def _read_manifest(tar: tarfile.TarFile, name: str) -> Manifest:
    member = tar.next()
    if (
        member is None
        or member.name != manifests.NAME
        or not _is_plain(member)
        or member.size > MOST_MANIFEST
    ):
        raise DamagedError(f"{name} is not a linker backup: it does not begin with {manifests.NAME}")
    content = tar.extractfile(member)
    assert content is not None
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, manifests.NAME).write_bytes(content.read())
        try:
            return manifests.load(Path(folder))
        except IndexesError as e:
            raise DamagedError(f"{name} is damaged: {str(e).replace(folder, name)}") from None
