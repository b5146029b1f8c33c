#!/bin/sh
# Quality of the bundled model beside its teacher, as the card reports it.
#
#     BOTHENDS_DATA=DATA [TEACHER=COMMAND] sh experiments/recipes/en-pt/evaluate.sh MODEL...
#
# from the root of the repository. DATA has ntrex/test.{en,pt-br} and tatoeba-en-pt/test.{en,pt}, and is
# relative: the records, which go into the repository, name it.
# Translations and scores go to experiments/results/en-pt, under the models' orders. Without TEACHER,
# the stored output of the teacher is scored.
set -eu
here=$(dirname "$0")
results=experiments/results/en-pt
: "${BOTHENDS_DATA:?names the directory of the test sets}"
case $BOTHENDS_DATA in /*) echo "BOTHENDS_DATA=$BOTHENDS_DATA: give a relative path, which records name" >&2 && exit 2 ;; esac

order() { # MODEL
    python -c "import sys; from bothends.model.directory import read_description; print(read_description(sys.argv[1]).order)" "$1"
}

for name in ntrex tatoeba-en-pt; do
    reference=$(ls "$BOTHENDS_DATA/$name"/test.pt-br "$BOTHENDS_DATA/$name"/test.pt 2>/dev/null || true)
    source=$BOTHENDS_DATA/$name/test.en
    if [ -n "${TEACHER:-}" ]; then $TEACHER < "$source" > "$results/$name.teacher.pt"; fi
    outputs=$results/$name.teacher.pt
    for model in "$@"; do
        for beam in 4 1; do
            output=$results/$name.$(order "$model")-beam-$beam.pt
            bothends translate --model "$model" --beam $beam --format lines "$source" > "$output"
            outputs="$outputs $output"
        done
    done
    # shellcheck disable=SC2086
    bothends evaluate --reference "$reference" --json "$results/$name.json" --hypothesis $outputs
done

python "$here/check_copies.py" > checks.en
for model in "$@"; do
    echo "copies, $model alone"
    bothends translate --model "$model" --format lines checks.en > checks.pt
    python "$here/check_copies.py" --judge checks.pt
    echo "copies, $model, addresses protected and numbers checked"
    bothends translate --model "$model" checks.en > checks.pt
    python "$here/check_copies.py" --judge checks.pt
done
rm checks.en checks.pt
