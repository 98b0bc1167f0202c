# Completions of identityctl(1) for bash 4.4 or later. They need nothing else, not even bash-completion.
# shellcheck shell=bash

# Fields of a command: words; operands; attributes. Fields of an option: name and value; commands that take it. A value
# is "a|b" for alternatives, "@source" for values from a source, or "-" for any value.
# BEGIN COMMANDS
_identityctl_commands=(
  'ping;;'
  'hello;;'
  'help;-...;'
  'whoami;;'
  'status;;'
  'stats;;apps=yes'
  'seal;;'
  'machine compare;-;'
  'machine acknowledge;;'
  'machine resumed;;'
  'quit;;'
  'get uuid;;count=- version=4|7'
  'get key;-;'
  'get session;;'
  'get boot;;app=@app'
  'get installation;;app=@app'
  'get vendor;;app=@app'
  'get device;;app=@app'
  'check;-;'
  'resolve;-;'
  'history;installation|vendor|device;app=@app'
  'renew;installation|vendor|device;app=@app replaces=yes'
  'migrate device;-;item=@account service=@service group=@group app=@app commit=yes force=yes'
  'migrate installation;-;item=@account service=@service group=@group app=@app commit=yes force=yes'
  'app list;;'
  'app forget;@app;unused=- app=-'
  'account;;'
  'account set;-;'
  'account clear;;'
  'devices;;'
  'devices name;-;'
  'devices put;-;name=- seen=- generation=- counter=- record=- replaces=- suspect=yes|no'
  'devices remove;-;generation=- counter=- record=-'
  'devices forget;-;unused=-'
  'fleet open;;run=-'
  'fleet next;;above=-'
  'fleet records;;after=- limit=-'
  'fleet rekeyed;;original=-'
  'fleet twin;;copy=yes|no|unknown'
  'fleet said;;state=- said.'
  'item add;;service=@service account=@account group=@group label=- attr. this-device-only=yes lifetime=installation'
  'item put;;service=@service account=@account group=@group label=- attr. this-device-only=yes lifetime=installation'
  'item read;;service=@service account=@account group=@group label=- attr.'
  'item find;;service=@service account=@account group=@group|* label=- attr. data=yes limit=one|all'
  'item update;;service=@service account=@account group=@group where.label=- where.attr. label=- attr.'
  'item delete;;service=@service account=@account group=@group label=- attr.'
  'version report;-;build=- order=numeric|semver|debian|linux|auto app=@app'
  'version state;;of=app|os app=@app|*'
  'version history;;of=app|os app=@app'
  'version compare;- -;build=- build2=- order=numeric|semver|debian|linux|auto'
  'version claim;-;app=@app'
  'token put;- -;environment=- topic=- renewed=yes app=@app'
  'token get;-;app=@app'
  'token list;;stale=- app=@app|* after=@app limit=-'
  'token invalidate;- -;app=@app'
  'token delete;-;app=@app'
  'prove;-;lifetime=- nonce=- app=@app'
  'proof keys;;'
  'proof rotate;;revoke=yes|no'
  'subscribe;device|installation|vendor|app|devices|account|item|version|token|proof...;since=- epoch=- snapshot=yes'
  'unsubscribe;device|installation|vendor|app|devices|account|item|version|token|proof...;'
  'key rotate;;'
  'key protect;;'
  'key recover;;'
  'backup;;key=-'
  'restore begin;;key=-'
  'restore add;;data=-'
  'restore end;;dry-run=yes adopt-device=yes'
  'monitor;device|installation|vendor|app|devices|account|item|version|token|proof...;'
  'wait;device|installation|vendor|app|devices|account|item|version|token|proof device|installation|vendor|app|devices|account|item|version|token|proof...;'
  'version changed;-;build=- order=numeric|semver|debian|linux|auto of=app|os app=@app'
  'version compare;- lt|le|eq|ne|ge|gt -;build=- build2=- order=numeric|semver|debian|linux|auto'
  'backup;@file;'
  'restore;@file;'
  'credential put;- -;owner=-'
  'credential list;-;owner=-'
  'credential delete;- -;owner=-'
  'proof verify;@file;'
  'proof discovery;;'
  'env otel;;'
  'check;;'
  'account create;-;'
  'account invite;;'
  'account join;-;'
  'account leave;;'
  'account rotate;;without=-'
  'fleet setup;-;'
  'fleet status;;'
  'fleet peers;;'
  'fleet sync;;'
  'fleet keys;;'
  'fleet keygen;site|sender -;'
  'fleet credentials;;'
)
_identityctl_options=(
  '--socket=@file;'
  '--user;'
  '--json;'
  '--quiet;'
  '--format=hyphen|plain|urn|upper|table;'
  '--full;'
  '--color=auto|always|never;'
  '--no-pager;'
  '--timeout=-;'
  '--yes;'
  '--version;'
  '--help;'
  '--all;help'
  '--since=-;monitor|wait'
  '--epoch=-;monitor|wait'
  '--file=@file;migrate device|migrate installation'
  '--field=-;migrate device|migrate installation'
  '--file=@file;account invite|account join|fleet setup'
  '--ca-file=@file;fleet setup'
  '--password-file=@file;fleet setup'
  '--create=-;fleet setup'
  '--join=-;fleet setup'
  '--no-passphrase;account invite'
  '--file=@file;fleet keygen'
  '--key=@file;fleet status'
  '--stale=-;fleet status'
  '--previous;fleet credentials'
  '--stale=-;devices'
  '--data-file=@file;item add|item put|item update|credential put|key protect|key recover'
  '--allow-empty;item add|item put|item update|credential put'
  '--raw;item read'
  '--token-file=@file;token put|token invalidate'
  '--keys=@file;proof verify'
  '--audience=-;proof verify'
  '--output=@file;fleet keys'
  '--key=@file;fleet keys'
  '--combined;fleet keys'
  '--output=@file;proof discovery'
  '--root=@file;seal'
  '--openmetrics;stats|check'
  '--prometheus;stats|check'
  '--output=@file;stats|check'
  '--passphrase-fd=-;backup|restore|account invite|account join|fleet setup'
  '--dry-run;seal|machine acknowledge|renew|app forget|account set|account clear|devices forget|item delete|version report|token delete|key recover|backup|restore'
  '--replaces;renew'
  '--adopt-device;restore'
)
# END COMMANDS

# Parses the beginning of a command line as the shell would, without expansions. Sets "words" to the complete words. For
# the last word, sets "current" to its value, "raw" to its written form, and "open" to its open quote, if any.
_identityctl_read() {
  local text=$1 begun='' character next i
  words=() current='' raw='' open=''
  for ((i = 0; i < ${#text}; i++)); do
    character=${text:i:1} next=${text:i+1:1}
    if [[ -z $open && $character == [[:space:]] ]]; then
      [[ -z $begun ]] || words+=("$current")
      begun='' current='' raw=''
      continue
    fi
    begun=1 raw+=$character
    case $open$character in
      "'" | '"') open=$character ;;
      "''" | '""') open='' ;;
      \\) raw+=$next current+=$next i=$((i + 1)) ;;
      '"'\\)
        if [[ -n $next && '"\`$' == *"$next"* ]]; then
          raw+=$next current+=$next i=$((i + 1))
        else
          current+=$character
        fi
        ;;
      *) current+=$character ;;
    esac
  done
}

# Sends a request, and prints the value of an attribute in each row, or the first word of each row if no attribute is
# named. Omits values with hidden characters. Prints nothing if the daemon does not answer within a second.
_identityctl_ask() {
  local name=$1
  shift
  if [[ -z $name ]]; then
    timeout 1 identityctl "${socket[@]}" "$@" 2>/dev/null </dev/null | grep -av '^"'
  else
    # Clients choose the names within "attributes".
    timeout 1 identityctl "${socket[@]}" --json "$@" 2>/dev/null </dev/null |
      LC_ALL=C sed -E 's/"attributes":\{("([^"\\]|\\.)*":"([^"\\]|\\.)*",?)*\}//g' |
      LC_ALL=C grep -aoE "\"$name\":\"([^\"\\\\]|\\\\[\"\\\\])*\"" |
      LC_ALL=C sed -e "s/^\"$name\":\"//" -e 's/"$//' -e 's/\\\(["\\]\)/\1/g' | LC_ALL=C sort -u
  fi
}

# Adds the possible values after a prefix.
_identityctl_values() {
  local prefix=$1 kind value
  local -a kinds values
  IFS='|' read -ra kinds <<<"$2"
  for kind in "${kinds[@]}"; do
    values=()
    case $kind in
      -) ;;
      @file) compopt -o default 2>/dev/null ;;
      @app) mapfile -t values < <(_identityctl_ask '' app list) ;;
      @group) mapfile -t values < <(_identityctl_ask group item find 'group=*' "${conditions[@]}") ;;
      @*) mapfile -t values < <(_identityctl_ask "${kind#@}" item find "${conditions[@]}") ;;
      *) values=("$kind") ;;
    esac
    for value in "${values[@]}"; do found+=("$prefix$value"); done
  done
}

# Adds the words and attributes that may follow the words before the cursor, or the values of an attribute.
_identityctl_words() {
  local entry name operands attributes attribute verb="${positional[0],,}" index
  local -a list
  # A command of two words takes precedence. Otherwise the command has one word, and the second word may be an operand.
  index=$((${#positional[@]} - 1))
  for entry in "${_identityctl_commands[@]}"; do
    [[ ${#positional[@]} -lt 2 || ${entry%%;*} != "$verb ${positional[1],,}" ]] || name=${entry%%;*}
  done
  [[ -z $name ]] || verb=$name index=$((${#positional[@]} - 2))
  for entry in "${_identityctl_commands[@]}"; do
    IFS=';' read -r name operands attributes <<<"$entry"
    if [[ ${#positional[@]} == 0 ]]; then
      found+=("${name%% *}")
    elif [[ ${#positional[@]} == 1 && $name == "$verb "* ]]; then
      found+=("${name#* }")
    fi
    [[ -z $helps && $name == "$verb" ]] || continue
    read -ra list <<<"$attributes"
    for attribute in "${list[@]}"; do
      name=${attribute%%=*}
      if [[ $current == "$name="* ]]; then
        _identityctl_values "$name=" "${attribute#*=}"
      elif [[ $attribute == *. ]]; then
        found+=("$attribute") partial+=("$attribute")
      elif [[ $given == *" $name "* ]]; then
        continue
      elif [[ ${attribute#*=} == *['|@-']* ]]; then
        found+=("$name=") partial+=("$name=")
      else
        found+=("$attribute")
      fi
    done
    read -ra list <<<"$operands"
    [[ $operands != *... || $index -lt ${#list[@]} ]] || index=$((${#list[@]} - 1))
    [[ $index -ge ${#list[@]} ]] || _identityctl_values '' "${list[index]%...}"
  done
}

_identityctl() {
  local current raw open word option='' ended='' helps='' given=' ' entry name text kept rest
  local -a words positional conditions socket commands found partial
  local -A shown takes belongs
  COMPREPLY=()
  _identityctl_read "${COMP_LINE:0:COMP_POINT}"
  for entry in "${_identityctl_options[@]}"; do
    name=${entry%%;*}
    [[ $name != *=* ]] || takes[${name%%=*}]=${name#*=}
    belongs[${name%%=*}]=${entry#*;}
  done
  for word in "${words[@]:1}"; do
    if [[ -n $option ]]; then
      [[ $option != --socket ]] || socket=("--socket=$word")
      option=''
    elif [[ -z $ended && $word == -?* ]]; then
      [[ $word != -- ]] || ended=1
      [[ $word != --help ]] || helps=1
      [[ $word != --socket=* ]] || socket=("$word")
      [[ -z ${takes[$word]-} ]] || option=$word
    elif [[ $word =~ ^[A-Za-z][A-Za-z0-9._-]*= ]]; then
      given+="${word%%=*} "
      [[ ${word%%=*} != @(service|account|group) ]] || conditions+=("$word")
    elif [[ ${#positional[@]} == 0 && ${word,,} == help ]]; then
      helps=1
    else
      positional+=("$word")
    fi
  done

  local target=$current
  # An attribute at the cursor is not a condition, even if it was given before.
  for name in "${!conditions[@]}"; do
    [[ $target != "${conditions[name]%%=*}="* ]] || unset "conditions[name]"
  done
  if [[ -n $option ]]; then
    _identityctl_values '' "${takes[$option]}"
  elif [[ -z $ended && $target == --*=* ]]; then
    _identityctl_values "${target%%=*}=" "${takes[${target%%=*}]--}"
  elif [[ -z $ended && $target == -* ]]; then
    for name in "${!belongs[@]}"; do
      IFS='|' read -ra commands <<<"${belongs[$name]}"
      text=${belongs[$name]:+no}
      for word in "${commands[@]}"; do
        [[ "${positional[*],,} " != "$word "* ]] || text=''
      done
      [[ -z $text ]] || continue
      found+=("$name${takes[$name]:+=}")
      [[ -z ${takes[$name]-} ]] || partial+=("$name=")
    done
  else
    _identityctl_words
  fi

  # bash replaces only the text after the last word break character, and keeps an open quote. Other callers of this
  # function may include the quote or the break character in the text.
  text=$2
  [[ $text != [\"\'=:]* ]] || text=${text:1}
  [[ $raw == *"$text" ]] || return 0
  kept=${raw%"$text"}
  _identityctl_read "$kept"
  for word in "${found[@]}"; do
    [[ $word == "$target"* && $word == "$current"* && -z ${shown[$word]-} ]] || continue
    shown[$word]=1
    rest=${word#"$current"}
    case $open in
      "'") rest=${rest//\'/\'\\\'\'} ;;
      '"')
        # Within double quotes, no escape prevents history expansion of an exclamation mark.
        [[ $rest != *!* ]] || continue
        rest=${rest//\\/\\\\} rest=${rest//\"/\\\"} rest=${rest//\$/\\\$} rest=${rest//\`/\\\`}
        ;;
      *) [[ -z $rest ]] || printf -v rest %q "$rest" ;;
    esac
    # readline closes the quote, unless the completion ends with the same character.
    [[ -z $open || $rest != *"$open" ]] || rest+=$open
    COMPREPLY+=("$rest")
    name=$word
  done
  [[ ${#COMPREPLY[@]} != 1 || " ${partial[*]} " != *" $name "* ]] || compopt -o nospace 2>/dev/null
  return 0
}

complete -F _identityctl identityctl
