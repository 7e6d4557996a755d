#!/bin/sh
# FOLDER PACKAGE COMMAND...: serves a workbench from FOLDER. Where the image has no JupyterLab, PACKAGE is installed first, if it is not empty.
# Where it cannot be served, a code of contract/workbench.py says why.
folder=$1 package=$2 python=$3
shift 3
cd "${0%/*}" || exit  # Python takes modules from where it starts: in FOLDER a person may have saved a queue.py
command -v "$python" >/dev/null || python=python3
command -v "$python" >/dev/null || exit 66
check='
import importlib.util, sys
if importlib.util.find_spec("jupyterlab") is None: sys.exit(64)
import jupyterlab
sys.exit(68 if int(jupyterlab.__version__.partition(".")[0]) < 4 else 0)'
"$python" -c "$check"
case $? in
  0) ;;
  64)
    [ -n "$package" ] || exit 64
    echo "trainyard: the image has no JupyterLab; installs $package"
    "$python" -m pip install --no-input --disable-pip-version-check --progress-bar off "$package" || exit 65
    "$python" -c "$check" || exit 67 ;;
  68) exit 68 ;;
  *) exit 67 ;;
esac
JUPYTER_RUNTIME_DIR=$(mktemp -d /tmp/trainyard-jupyter.XXXXXX) || exit  # its files have the token; HOME may be FOLDER, which is committed
export JUPYTER_RUNTIME_DIR
exec "$python" "$@" "--config=$TRAINYARD_BENCH_CONFIG" "--ServerApp.root_dir=$folder"
