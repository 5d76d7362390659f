"""What a file's name alone tells of its kind.

Apart from the readers, so that a look at a folder loads none of them.
"""

from __future__ import annotations

BINARY_SUFFIXES = frozenset(
    f".{name}"
    for name in (
        "png jpg jpeg gif bmp tif tiff webp heic heif avif ico icns svg svgz psd ai eps xcf cr2"
        " nef dng mp3 wav flac ogg oga opus m4a aac wma aiff mid midi mp4 m4v mkv webm avi mov wmv"
        " flv mpg mpeg 3gp zip gz tgz bz2 tbz xz txz zst lz4 7z rar tar jar war ear whl egg deb rpm"
        " apk ipa dmg iso img cab cpio exe dll so dylib a o obj lib pyc pyo pyd class wasm bin"
        " elf com sys msi ttf otf woff woff2 eot sqlite sqlite3 db db3 mdb accdb pickle pkl pck"
        " npy npz npt pt pth ckpt safetensors gguf ggml onnx tflite h5 hdf5 parquet feather arrow"
        " orc avro mat rds rdata sav dta joblib swp swo idx pack blend fbx glb stl"
        " dwg dxf mo gmo res nib crx xpi pcap pcapng keystore jks p12 pfx der"
    ).split()
)
"""Suffixes of what is never text: left out without a look at the content."""

_NAMES = {
    **dict.fromkeys(("dockerfile", "containerfile"), ".dockerfile"),
    **dict.fromkeys(("makefile", "gnumakefile"), ".mk"),
    **dict.fromkeys(("cmakelists.txt",), ".cmake"),
    **dict.fromkeys(("gemfile", "rakefile", "vagrantfile", "podfile"), ".rb"),
    **dict.fromkeys(("jenkinsfile",), ".groovy"),
}

_DOUBLE_SUFFIX = {".rst", ".md", ".markdown"}


def suffix_of(path: str) -> str:
    """Return the suffix of a name in lower case; of `name.rst.txt` the inner one."""
    stem, _, last = path.rpartition("/")[2].lower().rpartition(".")
    if not stem.strip(".") or not last:
        return ""
    inner = suffix_of(stem) if last == "txt" else ""
    return inner if inner in _DOUBLE_SUFFIX else f".{last}"


def suffix_by_name(path: str) -> str:
    """The suffix in lower case, of a name such as `Makefile` the one that it stands for."""
    name = path.rpartition("/")[2].lower()
    return _NAMES.get(name) or _NAMES.get(name.partition(".")[0]) or suffix_of(path)
