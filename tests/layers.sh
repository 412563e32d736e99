#!/bin/bash
# layers.sh: includes of compiler/ point down (tests/layers.txt); the runtime's rooms see only pn*.h, rt.h and their own.
set -u
cd "$(dirname "$0")/.." || exit 2
bad=0
level() {
    local number pattern
    while read -r number pattern; do
        case $number in '#'* | '') continue ;; esac
        # shellcheck disable=SC2254 # the pattern is a glob
        case $1 in $pattern) echo "$number"; return ;; esac
    done <tests/layers.txt
    echo 99
}
while read -r file; do
    name=${file#compiler/}
    own=$(level "$name")
    top=$own
    case $name in *.h) top=$((own - 1)) ;; esac
    if [ "$own" = 99 ]; then
        echo "$file: no level in tests/layers.txt"
        bad=1
        continue
    fi
    while read -r header; do
        case $header in
        ../runtime/* | ref/* | core/* | data/* | rt.h | pn.h | pnet.*) continue ;; # kernels of the evaluator; .def tables; generated
        *.def) continue ;;
        esac
        header=$(basename "$header")
        [ -e "compiler/$header" ] || header=$(cd compiler && find . -name "$header" | head -1 | sed 's|^\./||')
        theirs=$(level "$header")
        if [ "$theirs" -gt "$top" ]; then
            echo "$file (level $own) must not include $header (level $theirs)"
            bad=1
        fi
    done < <(sed -n 's/^#include "\([^"]*\)".*/\1/p' "$file")
done < <(find compiler -name '*.[ch]' | sort)
while read -r file; do
    room=$(basename "$(dirname "$file")")
    while read -r header; do
        case $room/$header in
        world/core/*) continue ;; # a rank tells what happens to its stages, its log and its files
        esac
        case $header in
        pn.h | pn_ops.h | pn_program.h | pn_profile.h | rt.h | *.def) continue ;;
        core/driver.h) [ "$room" = transport ] && continue ;; # transports drive the stages
        world/world.h) case $room in core | transport | cuda) continue ;; esac ;;
        ref/kernels.h) [ "$room" = cpu ] && continue ;;       # what no library does is done once, naively
        esac
        [ -e "runtime/$room/${header#"$room"/}" ] || {
            echo "$file: room $room must not include $header"
            bad=1
        }
    done < <(sed -n 's/^#include "\([^"]*\)".*/\1/p' "$file")
done < <(find runtime -mindepth 2 -name '*.[ch]' | sort)
exit $bad
