# shellcheck shell=bash
# Sourced: what keeps a run away from the sources and from compilers.

# absolute FILE: its path from the root, links not followed (an environment's Python is one)
absolute() { echo "$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"; }

# copy_tests FOLDER: all that tests read, without the sources
copy_tests() {
    rm -rf "$1"
    mkdir -p "$1"
    git ls-files -z | grep -zv '^src/' | tar -c --null -T - | tar -x -C "$1"
}

# tools_without_compilers FOLDER: links to every command of this machine but those that compile
tools_without_compilers() {
    rm -rf "$1"
    mkdir -p "$1"
    local folder file
    IFS=: read -ra folders <<< "$PATH"
    for folder in "${folders[@]}"; do
        for file in "$folder"/*; do
            case ${file##*/} in
                *g++* | *gcc* | c++* | cc | c89* | c99* | *clang* | cpp* | cmake* | ninja* | as | ld* | *-ld) ;;
                *) [ -e "$1/${file##*/}" ] || ln -s "$file" "$1/${file##*/}" ;;
            esac
        done
    done
}
