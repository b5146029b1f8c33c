#!/bin/sh
# Prepare the data of the miniatures from $BOTHENDS_DATA: all of them, or those that are named.
#   BOTHENDS_DATA=... experiments/prepare_mini.sh [multi30k-en-de ...]
set -eu
: "${BOTHENDS_DATA:?is where the text is: BOTHENDS_DATA/multi30k/train.en and so on}"

# prepare NAME FOLDER SOURCE TARGET VOCABULARY_SIZE [OPTION ...]
prepare() {
    name=$1 text=$BOTHENDS_DATA/$2 source=$3 target=$4 size=$5
    shift 5
    case " $wanted " in *" all "* | *" $name "*) ;; *) return 0 ;; esac
    # The coverage that the figures so far were made with; today's default keeps more characters.
    bothends prepare --overwrite --vocabulary-size "$size" --character-coverage 0.9995 \
        --output "runs/data/$name" \
        --source "$text/train.$source" --target "$text/train.$target" \
        --valid-source "$text/valid.$source" --valid-target "$text/valid.$target" "$@"
}

wanted=${*:-all}
prepare multi30k-en-de multi30k en de 6000
prepare multi30k-en-fr multi30k en fr 6000
prepare tatoeba-ro-en tatoeba-en-ro ro en 4000
prepare tatoeba-en-ru tatoeba-en-ru en ru 6000
prepare tatoeba-en-ja tatoeba-en-ja en ja 8000
prepare gigaword gigaword article title 6000
prepare dialogsum dialogsum dialogue summary 6000 --max-length 500 --max-ratio 0
