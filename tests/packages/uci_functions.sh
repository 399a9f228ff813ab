# What the translation uses of OpenWrt's /lib/functions.sh and network.sh, so that a shell without OpenWrt can run it:
# a file of /etc/config is shell already, as it is there for `uci export`.

package() { :; }

config() {
	uci_count=$((${uci_count:-0} + 1))
	uci_section="${2:-cfg$uci_count}"
	uci_sections="${uci_sections:-} $uci_section"
	eval "uci_${uci_section}_TYPE=\$1"
}

option() {
	eval "uci_${uci_section}_$1=\$2"
}

list() {
	local length
	config_get length "$uci_section" "$1_LENGTH" 0
	length=$((length + 1))
	eval "uci_${uci_section}_$1_LENGTH=\$length uci_${uci_section}_$1_ITEM$length=\$2"
}

# config_load NAME: the file NAME in $UCI_CONFIG_DIR.
config_load() {
	unset $(set | sed -n 's/^\(uci_[A-Za-z0-9_]*\)=.*/\1/p')
	. "$UCI_CONFIG_DIR/$1"
}

# config_get VARIABLE SECTION OPTION [DEFAULT]
config_get() {
	eval "$1=\${uci_$2_$3:-\$4}"
}

config_get_bool() {
	config_get "$@"
	case "$(eval "echo \$$1")" in
	1 | on | true | yes | enabled) eval "$1=1" ;;
	*) eval "$1=0" ;;
	esac
}

# config_foreach FUNCTION TYPE
config_foreach() {
	local uci_each uci_type
	for uci_each in $uci_sections; do
		config_get uci_type "$uci_each" TYPE
		[ "$uci_type" != "$2" ] || "$1" "$uci_each"
	done
}

# config_list_foreach SECTION OPTION FUNCTION
config_list_foreach() {
	local uci_length uci_number=1 uci_item
	config_get uci_length "$1" "$2_LENGTH" 0
	while [ "$uci_number" -le "$uci_length" ]; do
		config_get uci_item "$1" "$2_ITEM$uci_number"
		"$3" "$uci_item"
		uci_number=$((uci_number + 1))
	done
}

# network_get_device VARIABLE NETWORK: here a network "x" has the device "x0", except for "gone", which has none.
network_get_device() {
	[ "$2" != gone ] || return 1
	eval "$1=${2}0"
}
