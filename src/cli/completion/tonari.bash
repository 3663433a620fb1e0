# Completes the words of `tonari` in bash, from these tables, which `tonari generate completion bash` prints:
#
#   _tonari_commands[PATH]        lines NAME:DESCRIPTION, one per command of PATH; a path is "tonari bench", for example
#   _tonari_options[PATH]         lines --NAME:DESCRIPTION
#   _tonari_values[PATH OPTION]   the words that the option takes, or <file>, <folder>, or <value> for any other text;
#                                 behind "=" if a value follows only as in --NAME=VALUE
#   _tonari_operands[PATH]        <program>: a program with its arguments follows; <command>: names of commands follow

# Prints the first part of each line of $1.
_tonari_names() {
  local line
  while IFS= read -r line; do
    if [[ -n $line ]]; then printf '%s\n' "${line%%:*}"; fi
  done <<<"$1"
}

_tonari_has_command() {
  [[ $'\n'${_tonari_commands[$1]-} == *$'\n'"$2:"* ]]
}

# Sets COMPREPLY to what $1 allows: the value of an entry of _tonari_values. $2 is its beginning, $3 goes before it.
_tonari_complete_value() {
  case ${1#=} in
    '<file>') mapfile -t COMPREPLY < <(compgen -f -P "$3" -- "$2"); compopt -o filenames ;;
    '<folder>') mapfile -t COMPREPLY < <(compgen -d -P "$3" -- "$2"); compopt -o filenames ;;
    '<value>') ;;
    *) mapfile -t COMPREPLY < <(compgen -W "${1#=}" -P "$3" -- "$2") ;;
  esac
}

_tonari() {
  local at=tonari word value= program=-1 option= cur before=
  local -a words=() first=()  # the words, with --name=value in one piece, and where in COMP_WORDS each begins
  local -i i

  for ((i = 0; i <= COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if ((i > 1)) && [[ ($word == '=' && ${words[-1]} == --*) || (${COMP_WORDS[i - 1]} == '=' && ${words[-1]} == --*=) ]]; then
      words[-1]+=$word
    else
      words+=("$word")
      first+=("$i")
    fi
  done

  for ((i = 1; i < ${#words[@]} - 1 && program < 0; ++i)); do
    word=${words[i]}
    if [[ $word == -np || $word == --np ]]; then word=-n; fi
    option=
    if [[ $word == -- && -n ${_tonari_operands[$at]-} ]]; then
      program=$((i + 1))
    elif [[ $word == -* ]]; then
      value=${_tonari_values["$at $word"]-}
      if [[ -n $value && $value != =* ]]; then
        option=$word
        ((++i))
      fi
    elif [[ ${_tonari_operands[$at]-} == '<command>' ]]; then
      at=tonari  # the names after `tonari help` are a path of their own
      while ((i < ${#words[@]} - 1)) && _tonari_has_command "$at" "${words[i]}"; do at+=" ${words[i++]}"; done
      break
    elif _tonari_has_command "$at" "$word"; then
      at+=" $word"
    elif [[ ${_tonari_operands[$at]-} == '<program>' ]]; then
      program=$i
    fi
  done

  cur=${words[-1]}
  if ((program >= 0 && program < ${#words[@]} - 1)); then
    if declare -F _command_offset >/dev/null; then
      _command_offset "${first[program]}"
    else
      compopt -o default
    fi
  elif [[ -n $option ]] && ((i == ${#words[@]})); then
    _tonari_complete_value "${_tonari_values["$at $option"]}" "$cur" ''
  elif ((program < 0)) && [[ $cur == --*=* ]]; then
    # Bash replaces the whole word, or only what follows the "=".
    if [[ ${COMP_WORDS[COMP_CWORD]} == --*=* ]]; then before=${cur%%=*}=; fi
    _tonari_complete_value "${_tonari_values["$at ${cur%%=*}"]-<value>}" "${cur#*=}" "$before"
  elif ((program < 0)) && [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_tonari_names "${_tonari_options[$at]-}")" -- "$cur")
  elif [[ ${_tonari_operands[$at]-} == '<program>' ]]; then
    mapfile -t COMPREPLY < <(compgen -c -- "$cur")
    compopt -o default
  else
    [[ ${_tonari_operands[$at]-} == '<command>' ]] && at=tonari
    mapfile -t COMPREPLY < <(compgen -W "$(_tonari_names "${_tonari_commands[$at]-}")" -- "$cur")
  fi
}

complete -F _tonari tonari
