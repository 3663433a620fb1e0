# Completes the words of `tonari` in zsh, from the tables that src/cli/completion/tonari.bash describes.

# Offers what $1 allows: the value of an entry of _tonari_values.
_tonari_complete_value() {
  case ${1#=} in
    '<file>') _files ;;
    '<folder>') _files -/ ;;
    '<value>' | '') _message value ;;
    *) compadd -- ${=1#=} ;;
  esac
}

_tonari_complete() {
  local at=tonari word value option=
  local -i i program=0
  local -a entries

  for ((i = 2; i < CURRENT && program == 0; ++i)); do
    word=$words[i]
    if [[ $word == -np || $word == --np ]]; then word=-n; fi
    option=
    if [[ $word == -- && -n ${_tonari_operands[$at]-} ]]; then
      program=i+1
    elif [[ $word == -* ]]; then
      value=${_tonari_values[$at $word]-}
      if [[ -n $value && $value != "="* ]]; then
        option=$word
        ((++i))
      fi
    elif [[ ${_tonari_operands[$at]-} == '<command>' ]]; then
      at=tonari  # the names after `tonari help` are a path of their own
      while ((i < CURRENT)) && [[ $'\n'${_tonari_commands[$at]-} == *$'\n'$words[i]:* ]]; do
        at+=" $words[i]"
        ((++i))
      done
      break
    elif [[ $'\n'${_tonari_commands[$at]-} == *$'\n'$word:* ]]; then
      at+=" $word"
    elif [[ ${_tonari_operands[$at]-} == '<program>' ]]; then
      program=i
    fi
  done

  if ((program > 0)) || [[ ${_tonari_operands[$at]-} == '<program>' && $words[CURRENT] != -* && -z $option ]]; then
    if ((program == 0)); then program=CURRENT; fi
    words=("${(@)words[program,-1]}")
    CURRENT=$((CURRENT - program + 1))
    _normal
  elif [[ -n $option ]] && ((i > CURRENT)); then
    _tonari_complete_value "${_tonari_values[$at $option]}"
  elif [[ $words[CURRENT] == --*=* ]]; then
    option=${words[CURRENT]%%=*}
    compset -P '*='
    _tonari_complete_value "${_tonari_values[$at $option]-}"
  elif [[ $words[CURRENT] == -* ]]; then
    entries=("${(@f)${_tonari_options[$at]-}}")
    entries=("${(@)entries:#}")
    _describe -o option entries
  else
    if [[ ${_tonari_operands[$at]-} == '<command>' ]]; then at=tonari; fi
    entries=("${(@f)${_tonari_commands[$at]-}}")
    entries=("${(@)entries:#}")
    if (($#entries)); then _describe command entries; fi
  fi
}

_tonari_complete
