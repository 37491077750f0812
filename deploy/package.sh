#!/bin/sh
# Builds a tarball and, where dpkg-deb is there, a Debian package:
#
#     deploy/package.sh [VERSION] [DIRECTORY]
#
# VERSION is 0.0.0 plus the commit by default, DIRECTORY is dist. The same
# commit gives the same bytes (SOURCE_DATE_EPOCH is the commit's date).
set -eu
cd "$(dirname "$0")/.."
commit=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
version=${1:-0.0.0+$commit}
out=${2:-dist}
arch=$(go env GOARCH)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

CGO_ENABLED=0 go build -trimpath -buildvcs=false \
  -ldflags "-s -w -X main.version=$version" -o "$work/pawl" ./cmd/pawl

root=$work/root
install -D -m 0755 "$work/pawl" "$root/usr/bin/pawl"
install -D -m 0644 deploy/pawl.service "$root/lib/systemd/system/pawl.service"
install -D -m 0640 deploy/pawl.toml "$root/etc/pawl/pawl.toml"
doc=$root/usr/share/doc/pawl
install -d -m 0755 "$doc/docs" "$doc/examples"
install -m 0644 README.md ARCHITECTURE.md LICENSE "$doc/"
install -m 0644 docs/* "$doc/docs/"
install -m 0644 deploy/99-pawl.conf "$doc/examples/"
for extra in deploy/grafana.json deploy/alerts.yml; do
  if [ -f "$extra" ]; then install -m 0644 "$extra" "$doc/examples/"; fi
done
# The licences of what is linked in, as those licences ask.
go list -deps -f '{{with .Module}}{{if .Dir}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}{{end}}' ./cmd/pawl |
  sort -u | while read -r module dir; do
    for file in "$dir"/LICENSE* "$dir"/COPYING* "$dir"/NOTICE*; do
      if [ -f "$file" ]; then
        printf '\n==== %s: %s\n\n' "$module" "$(basename "$file")"
        cat "$file"
      fi
    done
  done >"$doc/THIRD-PARTY"
chmod 0644 "$doc/THIRD-PARTY"
find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +

name=pawl-$version-linux-$arch
cp -a "$root" "$work/$name"
tar --sort=name --owner=0 --group=0 --numeric-owner -C "$work" -cf - "$name" | gzip -n >"$out/$name.tar.gz"
echo "$out/$name.tar.gz"

if command -v dpkg-deb >/dev/null; then
  install -d -m 0755 "$root/DEBIAN"
  cat >"$root/DEBIAN/control" <<CONTROL
Package: pawl
Version: $version
Architecture: $arch
Maintainer: The Pawl authors <pawl@localhost>
Section: net
Priority: optional
Depends: passwd, util-linux
Installed-Size: $(du -sk "$root" | cut -f1)
Description: durable task queue daemon
 Serves Moxy's commands over RESP and lmstfy's API over HTTP from a
 write-ahead log of its own. An OK means that the job is on disk.
CONTROL
  echo /etc/pawl/pawl.toml >"$root/DEBIAN/conffiles"
  for script in postinst prerm postrm; do
    install -m 0755 "deploy/debian/$script" "$root/DEBIAN/$script"
  done
  find "$root/DEBIAN" -exec touch -d "@$SOURCE_DATE_EPOCH" {} +
  dpkg-deb --root-owner-group -Zxz --build "$root" "$out/pawl_${version}_$arch.deb" >/dev/null
  echo "$out/pawl_${version}_$arch.deb"
fi
