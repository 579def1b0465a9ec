# Completion of tacc's programs in bash: options are those that the program itself lists for --help.
_tacc() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} modes='' mode='' help words=''
  case ${1##*/} in
    tacc_bench) modes='conv gemm layers easgd' ;;
    tacc_tune) modes=conv ;;
    tacc_plan) modes='list show verify' ;;
  esac
  if [ "$COMP_CWORD" -gt 1 ] && [[ " $modes " == *" ${COMP_WORDS[1]} "* ]]; then mode=${COMP_WORDS[1]}; fi
  help=$("$1" $mode --help 2>/dev/null </dev/null) || return
  if [[ $word == -* ]]; then
    words=$(grep -oE '^ +(-[a-z],)?--[a-z0-9-]+' <<<"$help" | grep -oE -- '--.*')
  elif [[ $before == --* ]]; then # one of those in braces, or a file
    words=$(sed -nE "s/^ +(-[a-z],)?$before [A-Z]+:\{([^}]*)\}.*/\2/p" <<<"$help" | tr ',' ' ')
  elif [ -z "$mode" ]; then # the collectives, which the line of the argument lists
    words="$(sed -n '/^Positionals:/,/^$/p' <<<"$help" | grep -oE '[a-z]+,|, [a-z]+' | tr -d ', ')"
    [ "$COMP_CWORD" -gt 1 ] || words+=" $modes"
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _tacc tacc_bench tacc_info tacc_plan tacc_sim tacc_topo tacc_tune
