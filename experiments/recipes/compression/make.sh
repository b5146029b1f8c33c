#!/bin/sh
# A sentence compressor and its faster students: text, mending, task, students. From the root of the repository:
#
#     BOTHENDS_DATA=DATA sh experiments/recipes/compression/make.sh
#
# Again, to go on after an interruption: a training goes on from its last checkpoint, and what is there is left alone.
set -eu
recipes=experiments/recipes/compression
runs=runs/compression
average() { # RUN, and its int8 export
    [ -d "$runs/$1-averaged" ] || bothends average "$runs/$1" --last 5 --output "$runs/$1-averaged"
    [ -d "$runs/$1-int8" ] || bothends export "$runs/$1-averaged" --precision int8 --output "$runs/$1-int8"
}

[ -d $runs/data/headlines ] || sh $recipes/text.sh
bothends train $recipes/mend.yaml
average mend
bothends train $recipes/1x1.yaml
average 1x1
# What the teacher makes of sentences that nobody has compressed, and of those it learned from.
[ -d $runs/data/students ] || {
    awk 'NR % 8 == 0' $runs/text/whole > $runs/text/unlabelled
    bothends distill --teacher $runs/1x1-int8 --engine native --source $runs/text/unlabelled $runs/text/headlines.source \
        --output $runs/distilled --drop-empty --drop-repetitions
    bothends prepare --output $runs/data/students --vocabulary $runs/1x1-averaged --max-ratio 0 \
        --source $runs/distilled/train.source --target $runs/distilled/train.target \
        --valid-source "$BOTHENDS_DATA/compression/valid.sentence" --valid-target "$BOTHENDS_DATA/compression/valid.compression"
}
bothends train $recipes/student.yaml order=2x1 run=$runs/2x1
average 2x1
bothends train $recipes/student.yaml order=2x2 init=$runs/2x1-averaged run=$runs/2x2 \
    training.updates=600 validation.every=300
average 2x2
