#!/bin/sh
# Compressions and headlines of the test sets, beside what they must beat.
#
#     BOTHENDS_DATA=DATA sh experiments/recipes/compression/evaluate.sh MODEL...
#
# from the root of the repository; DATA is relative: the records, which go into the repository, name it.
# Outputs and scores go to experiments/results/compression, under the models' orders.
set -eu
: "${BOTHENDS_DATA:?names the directory of the text}"
case $BOTHENDS_DATA in /*) echo "BOTHENDS_DATA=$BOTHENDS_DATA: give a relative path, which records name" >&2 && exit 2 ;; esac

order() { # MODEL
    python -c "import sys; from bothends.model.directory import read_description; print(read_description(sys.argv[1]).order)" "$1"
}

# judge NAME SOURCE REFERENCE EXAMPLES PREFIX MODEL...; sources are read with the prefix of their task
judge() {
    results=experiments/results/compression/$1 source=$2 reference=$3 examples=$4 prefix=$5
    shift 5
    python experiments/baselines.py --source "$source" --reference "$reference" --examples "$examples" --output "$results"
    outputs="$results/lead.txt $results/constant.txt"
    for model in "$@"; do
        name=$(order "$model")
        for beam in 4 1; do
            output=$results/$name-beam-$beam.txt
            sed "s/^/$prefix/" "$source" | bothends translate --model "$model" --beam $beam --format lines > "$output"
            outputs="$outputs $output"
        done
        output=$results/$name-shuffled.txt
        sed "s/^/$prefix/" "$results/shuffled.txt" | bothends translate --model "$model" --beam 4 --format lines > "$output"
        outputs="$outputs $output"
    done
    rm "$results/shuffled.txt"
    # shellcheck disable=SC2086
    bothends evaluate --reference "$reference" --metrics rouge,length,repetition --json "$results/scores.json" --hypothesis $outputs
    # shellcheck disable=SC2086
    python experiments/baselines.py --source "$source" --judge $outputs
    rm "$results/lead.txt" "$results/constant.txt" # lines of the data, which stays where it is
}

text=$BOTHENDS_DATA/compression
judge sentences "$text/test.sentence" "$text/test.compression" "$text/valid.compression" "" "$@"
text=$BOTHENDS_DATA/gigaword
judge headlines "$text/test.article" "$text/test.title" "$text/valid.title" "headline: " "$@"
