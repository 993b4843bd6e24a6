# Sourced by measurements of flow policies of Push-T, which set demonstrations, out, episodes and seeds: the data set, how
# a policy is made, and how it is benched.
bid=${BID:-.venv/bin/bid}
mkdir -p "$out"
[ -f "$out/pusht.npz" ] || "$bid" bench data "$demonstrations" --task pusht --out "$out/pusht.npz"

policy() { # NAME OPTIONS...; settings last, after --set
  "$bid" train "$out/pusht.npz" --family flow --task pusht --out "$out/$1" --steps "${STEPS:-3000}" --batch 128 \
    --device cpu "${@:2}" threads=1 network.condition=256 action_reference=base augment.state=0.03 augment.history=0.5
  [ -d "$out/bundle_$1" ] || "$bid" policy export "$out/$1" --task pusht --out "$out/bundle_$1"
}

bench() { # RUNS POLICY DECODERS RUNTIME OPTIONS...
  "$bid" bench pusht --bundle "$out/bundle_$2" --decoder "$3" --runtime "$4" --seed "$seeds" --episodes "$episodes" \
    --workers "${WORKERS:-2}" --out "$out/runs_$1" "${@:5}" >"$out/$1.md"
}
