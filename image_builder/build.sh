#!/usr/bin/env bash
# Brings one image under one tag into every region that the order names: builds or finds it once, then copies it by its
# digest, region after region. CodeBuild runs it; the order is JSON in $ORDER (contract.images.BuildOrder).
#
# The build pushes the image to a repository of its own and copies it from there, so that each region gets the same manifest,
# byte by byte: a second `docker push` may compress layers again, and then the digests differ.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints a single answer of order.py.
one() { # question [value ...]
  python3 "$here/order.py" "$@" | tr -d '\0'
}

# Reads several answers into the array `answers`; uses a file, so that a failure ends the script.
several() { # question
  python3 "$here/order.py" "$@" >"$work/answers"
  mapfile -d '' -t answers <"$work/answers"
}

log_in() { # region registry
  local password
  password=$(aws ecr get-login-password --region "$1") || return
  docker login --username AWS --password-stdin "$2" <<<"$password" >/dev/null
}

# Builds or finds the image, and writes its metadata to a file.
find_image() { # file
  if [[ -n $source ]]; then
    docker buildx imagetools inspect --format '{{json .Manifest}}' "$source" >"$1"
    return
  fi
  local archive
  archive=$work/$(one archive)
  several fetch
  echo "Fetching the context"
  aws s3api get-object "${answers[@]}" "$archive" >/dev/null
  python3 "$here/unpack.py" "$archive" "$work/context"
  if [[ -n $records ]]; then
    python3 "$here/own.py" verify "$work/context"
    fix_base
  fi
  several build
  docker buildx build "${answers[@]}" --metadata-file "$1" "$work/context"
}

# Finds which image the base's tag names, unless an earlier build has, and records it for all later builds: a tag may move.
fix_base() {
  local address
  address=$(one unfixed)
  [[ -n $address ]] || return 0
  docker buildx imagetools inspect --format '{{json .Manifest}}' "$address" >"$work/base.json"
  BASE_DIGEST=$(one digest <"$work/base.json")
  export BASE_DIGEST
  echo "The base image $address is $BASE_DIGEST from now on"
  put base "$work/base-record.json" --if-none-match '*'
}

# Writes a document of own.py to the place that own.py names.
put() { # document file [option ...]
  local document=$1 file=$2
  shift 2
  python3 "$here/own.py" "$document" "$work/context" "$digest" >"$file"
  python3 "$here/own.py" place "$document" "$digest" >"$work/answers"
  mapfile -d '' -t answers <"$work/answers"
  aws s3api put-object "${answers[@]}" --body "$file" --content-type application/json "$@" >/dev/null
}

# Copies a manifest or an index unchanged: without --prefer-index=false the copy of a manifest would be an index around it.
copy_to() { # region registry address
  log_in "$1" "$2" && docker buildx imagetools create --prefer-index=false --tag "$3" "$image"
}

# Prints the digest of the tag in a region; prints nothing if the region lacks the tag.
standing() { # region
  aws ecr describe-images --region "$1" --repository-name "$repository" --image-ids "imageTag=$tag" \
    --query 'imageDetails[0].imageDigest' --output text 2>/dev/null || true
}

repository=$(one repository)
tag=$(one tag)
source=$(one source)
records=$(one records)
digest=

several logins
for ((i = 0; i < ${#answers[@]}; i += 2)); do
  log_in "${answers[@]:i:2}"
done

if [[ -n $source ]]; then echo "Copying $source"; else echo "Building $repository:$tag"; fi
find_image "$work/image.json"
digest=$(one digest <"$work/image.json")
image=$(one pinned "${source:-$(one built)}" "$digest")
echo "The image is $image"
# Before any region has the tag: what stands under it is believed only with its record.
if [[ -n $records && -z $source ]]; then
  put parts "$work/parts.json"
  put provenance "$work/provenance.json"
fi

several targets
failed=() taken=
for ((i = 0; i < ${#answers[@]}; i += 3)); do
  target=("${answers[@]:i:3}")
  region=${target[0]}
  # Tries twice, because a connection may break; layers that were sent are not sent again.
  if { copy_to "${target[@]}" || copy_to "${target[@]}"; } 2>&1 | tee "$work/push.log"; then
    echo "$region: ${target[2]} is $digest"
    continue
  fi
  stands=$(standing "$region")
  if [[ $stands == "$digest" ]]; then
    echo "$region: ${target[2]} is $digest already"
  elif [[ $stands == sha256:* ]]; then
    # Another build's image got the tag first and is being copied to the other regions: stop, so that the two do not mix.
    taken=$region
    failed+=("$region: the tag was taken meanwhile by $stands; the regions after it were not tried")
    break
  else
    failed+=("$region: $(tail -n 1 "$work/push.log")")
  fi
done

if ((${#failed[@]})); then
  echo "The image did not get into ${#failed[@]} of the regions:" >&2
  printf '  %s\n' "${failed[@]}" >&2
  if [[ -z $taken ]]; then
    echo "Start the same input again once the reason is gone: what stands in a region is copied to the others." >&2
  fi
  exit 1
fi
