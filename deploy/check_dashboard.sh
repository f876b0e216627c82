#!/bin/bash
# Looks at every page of a running scheduler in a real browser, and at how fast the pages are.
#
# usage: deploy/check_dashboard.sh [--pictures] KILN [FOLDER]
#   KILN        the binary, for instance bazel-bin/client/cli/kiln
#   FOLDER      for pictures and logs [a temporary one, which is removed]
#   --pictures  replaces the pictures of docs/dashboard
#
# Needs root for the packages: Debian's chromium, chromium-driver, python3-selenium, pngquant and
# webp are installed if they are missing, and axe-core comes out of the package
# axe-playwright-python. The browser and the farm run as an ordinary user, with a home of its own.
# Ends with status 1 if a page has an error, or axe-core finds something. It takes some five
# minutes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

pictures=
if [[ ${1:-} == --pictures ]]; then
  pictures=$here/../docs/dashboard
  shift
fi
[[ $# -ge 1 && -x $1 ]] || { sed -n 's/^# //; 3,8p' "$0"; exit 2; }
kiln=$(realpath "$1")
axe_version=0.1.8

missing=()
for package in chromium chromium-driver python3-selenium fonts-dejavu-core fonts-inter pngquant webp; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
    missing+=("$package")
done
if [[ ${#missing[@]} -gt 0 ]]; then
  apt-get update -q
  apt-get install -q -y --no-install-recommends "${missing[@]}"
fi

place=$(mktemp -d /tmp/check_dashboard.XXXXXX)
finish() { [[ -n ${keep:-} ]] || rm -rf "$place"; }
trap finish EXIT
if [[ $# -ge 2 ]]; then
  keep=$2
  mkdir -p "$keep"
fi
python3 -m pip install -q --no-deps --target "$place/axe" "axe-playwright-python==$axe_version" \
  2>"$place/pip.log" || { cat "$place/pip.log"; exit 1; }
cp "$place/axe/axe_playwright_python/axe.min.js" "$place/axe.min.js"
cp "$kiln" "$place/kiln"
cp "$here/check_dashboard.py" "$place/"
mkdir "$place/home" "$place/out"
user=nobody
chmod 755 "$place" "$place/kiln"
chmod 644 "$place/axe.min.js" "$place/check_dashboard.py"
chown -R "$user" "$place/home" "$place/out"

status=0
runuser -u "$user" -- env -i HOME="$place/home" PATH=/usr/bin:/bin LANG=C.UTF-8 no_proxy='*' \
  /usr/bin/python3 "$place/check_dashboard.py" "$place/kiln" "$place/axe.min.js" "$place/out" ||
  status=$?
for picture in "$place"/out/*.png; do
  [[ -e $picture ]] || continue
  if [[ -n $pictures && $(basename "$picture") == doc-* ]]; then
    mkdir -p "$pictures"
    name=$(basename "$picture" .png)
    cwebp -quiet -near_lossless 60 "$picture" -o "$pictures/${name#doc-}.webp"
  fi
  pngquant --force --skip-if-larger --ext .png 256 "$picture" || true
done
if [[ -n ${keep:-} ]]; then
  cp -r "$place/out/." "$keep/"
  rm -rf "$place"
fi
exit $status
