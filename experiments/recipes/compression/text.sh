#!/bin/sh
# The text that a compressor learns from, made from $BOTHENDS_DATA, in runs/compression:
# text to mend (data/mend), sentences and their compressions (data/task), headlines (data/headlines).
set -eu
: "${BOTHENDS_DATA:?is where the text is: BOTHENDS_DATA/compression/train.sentence and so on}"
here=runs/compression
mkdir -p "$here/data" "$here/text"
cd "$here/text"
case $BOTHENDS_DATA in /*) ;; *) BOTHENDS_DATA=../../../$BOTHENDS_DATA ;; esac
english=$BOTHENDS_DATA/english-text

# News is what the task is about, and there is little of it.
news() {
    cat "$BOTHENDS_DATA/gigaword/train.article" "$BOTHENDS_DATA/compression/train.sentence"
}
{
    head -n 300000 "$english/europarl.en"
    head -n 60000 "$english/abstracts.en"
    cat "$english/common-voice.en"
    news
    news
    news
} | awk 'NF >= 4 && NF <= 50' | shuf --random-source "$english/europarl.en" > whole
awk 'NR % 2' whole > masked.target
awk 'NR % 2 == 0' whole > added.target
rm -f masked.source added.source valid.source
bothends denoise --text "$BOTHENDS_DATA/compression/valid.sentence" --output valid.source
bothends denoise --text masked.target --output masked.source
bothends denoise --text added.target --output added.source --masked 0 --deleted 0 --copied 0.1 --added 1
sed 's/^/headline: /' "$BOTHENDS_DATA/gigaword/train.article" > headlines.source

bothends prepare --overwrite --output ../data/mend --vocabulary-size 6000 --split-digits \
    --source masked.source added.source --target masked.target added.target \
    --valid-source valid.source --valid-target "$BOTHENDS_DATA/compression/valid.sentence"
bothends prepare --overwrite --output ../data/task --vocabulary ../data/mend \
    --source "$BOTHENDS_DATA/compression/train.sentence" --target "$BOTHENDS_DATA/compression/train.compression" \
    --valid-source "$BOTHENDS_DATA/compression/valid.sentence" --valid-target "$BOTHENDS_DATA/compression/valid.compression"
bothends prepare --overwrite --output ../data/headlines --vocabulary ../data/mend --max-ratio 0 \
    --source headlines.source --target "$BOTHENDS_DATA/gigaword/train.title"
