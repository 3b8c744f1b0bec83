"""A real OpenSearch for the tests, on loopback: `python -m tests.opensearch_server fetch` downloads it once.

Its minimal distribution, its k-NN plugin and the scripting language that the plugin needs are on Maven Central; they
come through the user's own `mvn`. The plugin's native libraries are not there, so only its Lucene engine can be
tested. LINKER_OPENSEARCH_HOME names its folder, or the user's own unpacked OpenSearch with its k-NN plugin. For tests
only.
"""

import os
import re
import shutil
import zipfile
from pathlib import Path

from tests import elastic_server
from tests.elastic_server import Product
from tests.fetching import NoServerError, check, fetched, maven

VERSION = "2.19.1"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
SERVER, PLUGIN = f"opensearch-{VERSION}.zip", f"opensearch-knn-{VERSION}.0.zip"
# Group, name, version and kind of each archive, and its SHA-256; the jars are the module that the distribution lacks.
ARCHIVES = {
    ("org.opensearch.distribution.integ-test-zip", "opensearch", VERSION, "zip"):
        "af7152d8b7f6f1cee09d47276b32b70479fe6dd8cdbb61213f84eb7f8098b261",
    ("org.opensearch.plugin", "opensearch-knn", f"{VERSION}.0", "zip"):
        "eab8c9818865bc035212eab5068cdacae164baa09d4c152f49b736d6f6b0e85c",
    ("org.opensearch.plugin", "lang-painless", VERSION, "jar"):
        "3cf5e02efa40ff5b88e74e1ab66a0bc462de3509fab4a6a4ffe90b8d13777a9a",
    ("org.opensearch.plugin", "opensearch-scripting-painless-spi", VERSION, "jar"):
        "c2598797a5f6f897ce7e8d05f593ff96de3fbc56c52f299d63cddcae41556dda",
    ("org.antlr", "antlr4-runtime", "4.13.1", "jar"):
        "54665d2838cc66458343468efc539e454fc95b46a8a04b13c6ac43fc9be63505",
    ("org.ow2.asm", "asm", "9.7", "jar"): "adf46d5e34940bdf148ecdd26a9ee8eea94496a72034ff7141066b3eea5c4e9d",
    ("org.ow2.asm", "asm-analysis", "9.7", "jar"): "7bc6bcbc21379948a0c8c467fb0f864206e5b818f6bc0b546872f5c9f941556f",
    ("org.ow2.asm", "asm-commons", "9.7", "jar"): "389bc247958e049fc9a0408d398c92c6d370c18035120395d4cba1d9d9304b7a",
    ("org.ow2.asm", "asm-tree", "9.7", "jar"): "62f4b3bc436045c1acb5c3ba2d8ec556ec3369093d7f5d06c747eb04b56d52b1",
    ("org.ow2.asm", "asm-util", "9.7", "jar"): "37a6414d36641973f1af104937c95d6d921b2ddb4d612c66c5a9f2b13fc14211",
}  # fmt: skip
PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>x</groupId><artifactId>x</artifactId><version>1</version><dependencies>{}</dependencies></project>
"""
ONE = """<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version><type>{}</type><exclusions>
<exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>
"""
DESCRIPTOR = f"""description=An easy, safe and fast scripting language for OpenSearch
version={VERSION}
name=lang-painless
classname=org.opensearch.painless.PainlessPlugin
java.version=11
opensearch.version={VERSION}
extended.plugins=
has.native.controller=false
"""
POLICY = """grant {
  permission java.lang.RuntimePermission "createClassLoader";
  permission java.lang.RuntimePermission "getClassLoader";
};
"""
# in the server's own folder, which it must not modify
TO_FILES = re.compile(r".*(Xlog|HeapDump|ErrorFile).*\n")


def home() -> Path:
    """Return the folder where OpenSearch is or will be unpacked; a system user must be able to read it."""
    if given := os.environ.get("LINKER_OPENSEARCH_HOME"):
        return Path(given)
    return elastic_server.home().parent / "opensearch"


def fetch() -> Path:
    """Return the home of an OpenSearch, after a download of 60 MB if there is none yet. Raises NoServerError."""
    if shutil.which("java") is None:
        raise NoServerError("no java: install a Java runtime, 11 to 21")
    return fetched("OpenSearch", home(), "LINKER_OPENSEARCH_HOME", _get)


def _get(folder: Path) -> Path:
    dependencies = "".join(ONE.format(*archive) for archive in ARCHIVES)
    (folder / "pom.xml").write_text(PROJECT.format(dependencies), encoding="utf-8")
    maven("OpenSearch", [COPY], folder, minutes=15)
    for (_, name, version, kind), sha256 in ARCHIVES.items():
        check(folder / f"{name}-{version}.{kind}", sha256)
    return _assembled(folder)


def _assembled(folder: Path) -> Path:
    """Unpack the server with its plugin and its module, readable by everyone."""
    with zipfile.ZipFile(folder / SERVER) as packed:
        packed.extractall(folder)
    server = folder / f"opensearch-{VERSION}"
    with zipfile.ZipFile(folder / PLUGIN) as packed:
        packed.extractall(server / "plugins" / "opensearch-knn")
    module = server / "modules" / "lang-painless"
    module.mkdir()
    for jar in folder.glob("*.jar"):
        jar.rename(module / jar.name)
    (module / "plugin-descriptor.properties").write_text(DESCRIPTOR, encoding="utf-8")
    (module / "plugin-security.policy").write_text(POLICY, encoding="utf-8")
    options = server / "config" / "jvm.options"
    options.write_text(TO_FILES.sub("", options.read_text(encoding="utf-8")), encoding="utf-8")
    for path in (server, *server.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
    return server


OPENSEARCH = Product(
    "OpenSearch", "opensearch", "OPENSEARCH", home, fetch, b"org.opensearch.bootstrap.OpenSearch"
)

if __name__ == "__main__":
    elastic_server.main(OPENSEARCH)
