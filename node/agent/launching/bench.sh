#!/bin/sh
# FOLDER PACKAGE COMMAND...: serves a workbench from FOLDER. Where the image has no JupyterLab, PACKAGE is installed first, if it is not empty.
folder=$1 package=$2 python=$3
shift 3
command -v "$python" >/dev/null || python=python3
if ! "$python" -c 'import jupyterlab' >/dev/null 2>&1; then
  [ -n "$package" ] || exit 64
  echo "trainyard: the image has no JupyterLab; installs $package"
  "$python" -m pip install --no-input --disable-pip-version-check --progress-bar off "$package" || exit 65
fi
cd "$folder" && exec "$python" "$@" "--config=$TRAINYARD_BENCH_CONFIG"
