# Translates /etc/config/braid (UCI) into the YAML that braidd reads: sourced after /lib/functions.sh, whose config_load
# has been called; braid_yaml writes to standard output. Every value is quoted, so that none can be more than a value;
# whether it is a good one is braidd's to say (braidd --check).

# An option's name with dashes instead of the underscores that UCI asks for.
braid_key() {
	echo "$1" | tr _ -
}

# A value in YAML's single quotes.
braid_quoted() {
	printf "'%s'" "$(printf '%s' "$1" | tr '\n' ' ' | sed "s/'/''/g")"
}

# The options of a section that become a line each, former names too, because braidd then names the present one. Written
# from the table of settings (src/gateway/config/settings.cc), and compared with it by settings_test.
braid_settings() {
	case "$1" in
	device) echo name mode when_down mark_mask rule_priority mtu bridge ageing_time mac_age flood_limit ;;
	tunnel) echo controller initial_window scheduler cipher mtu max_mtu rekey_after rekey_packets codel_target codel_interval queue_limit reorder_timeout hold_time reorder_limit hold_limit delivery_timeout repair_time max_flows flow_idle_timeout flow_idle max_subflows tell_names ecn_proxy failback_delay return_after ;;
	tunnel.ack-shim) echo enabled alpha phi gamma rto_min inactivity max_flows replay sack_gap ;;
	streams) echo enabled connect source max_connections max_streams_per_peer max_per_peer new_streams_per_peer new_per_peer receive_window hold_limit peer_receive_limit peer_hold_limit total_receive_limit total_hold_limit ;;
	recovery) echo policy k_max m_max alpha beta alpha1 beta1 alpha2 beta2 decode_buffer trace ;;
	esac
}

# braid_options SECTION INDENT OPTION...: a line for each of the options that the section has.
braid_options() {
	local section="$1" indent="$2" option value
	shift 2
	for option in "$@"; do
		config_get value "$section" "$option"
		[ -z "$value" ] || echo "$indent$(braid_key "$option"): $(braid_quoted "$value")"
	done
}

braid_item() {
	printf '%s%s' "$braid_comma" "$(braid_quoted "$1")"
	braid_comma=', '
}

# braid_list SECTION INDENT OPTION KEY: the items of a list on one line, when there are any.
braid_list() {
	local braid_comma='' length
	config_get length "$1" "$3_LENGTH"
	[ -n "$length" ] || return 0
	printf '%s%s: [' "$2" "$4"
	config_list_foreach "$1" "$3" braid_item
	echo ']'
}

# braid_map SECTION INDENT KEY OPTION:NAME...: a mapping on one line, of the options that are there; nothing without.
braid_map() {
	local section="$1" indent="$2" key="$3" pair value text=''
	shift 3
	for pair in "$@"; do
		config_get value "$section" "${pair%%:*}"
		[ -z "$value" ] || text="$text${text:+, }${pair#*:}: $(braid_quoted "$value")"
	done
	[ -z "$text" ] || echo "$indent$key: {$text}"
}

# braid_name SECTION INDENT: what a peer or uplink is called: its option "name", or else the name of its section.
braid_name() {
	local value
	config_get value "$1" name "$1"
	echo "$2name: $(braid_quoted "$value")"
}

# A network of OpenWrt ("wan") stands for its device, where the system knows it; a device for itself.
braid_uplink() {
	local network interface mac path
	config_get interface "$1" interface
	config_get network "$1" network
	config_get mac "$1" mac
	config_get path "$1" path
	if [ -z "$interface$mac$path" ] && [ -n "$network" ]; then
		network_get_device interface "$network" || {
			echo "braid: uplink $1: network $network has no device yet, left out" >&2
			return 0
		}
	fi
	braid_uplinks=$((braid_uplinks + 1))
	[ "$braid_uplinks" -gt 1 ] || echo "uplinks:"
	braid_name "$1" '  - '
	[ -n "$mac$path" ] || echo "    interface: $(braid_quoted "$interface")"
	braid_options "$1" '    ' mac path
	braid_list "$1" '    ' resolver resolvers
	braid_options "$1" '    ' gateway source subflows use weight
	braid_map "$1" '    ' metered cap:cap period:period reset_day:reset-day reset_hour:reset-hour
	braid_map "$1" '    ' rate-limit limit_up:up limit_down:down
}

braid_peer() {
	braid_peers=$((braid_peers + 1))
	[ "$braid_peers" -gt 1 ] || echo "peers:"
	braid_name "$1" '  - '
	braid_options "$1" '    ' pin keepalive psk group
	braid_list "$1" '    ' endpoint endpoints
	braid_list "$1" '    ' prefix prefixes
}

braid_gateway() {
	braid_map "$1" '' identity key:key certificate:certificate
	braid_options "$1" '' state peers_folder portal_check forwarding between_peers nat
	braid_list "$1" '' listen listen
	braid_map "$1" '' control socket:socket group:group
	braid_map "$1" '' log log_level:level
	braid_map "$1" '' offloads offload_device:device offload_sockets:sockets
}

braid_device() {
	echo "device:"
	braid_options "$1" '  ' $(braid_settings device)
	braid_list "$1" '  ' address addresses
	braid_list "$1" '  ' route routes
	braid_list "$1" '  ' network networks
	braid_list "$1" '  ' bypass_mark bypass-marks
	braid_list "$1" '  ' ethertype ethertypes
}

# braid_rule SECTION INDENT: an item of a list of networks and ports.
braid_rule() {
	braid_map "$1" "$2" '- rule' network:network ports:ports | sed 's/- rule: /- /'
}

braid_exclusion() {
	braid_exclusions=$((braid_exclusions + 1))
	[ "$braid_exclusions" -gt 1 ] || echo "    exclude:"
	braid_rule "$1" '      '
}

braid_tunnel() {
	braid_tunnels=$((braid_tunnels + 1))
	echo "tunnel:"
	braid_options "$1" '  ' $(braid_settings tunnel)
	braid_map "$1" '  ' amp amp_gamma:gamma amp_tau:tau amp_beta:beta amp_cwnd_min:cwnd-min amp_bdp:bdp \
		amp_mark_threshold:mark-threshold
}

braid_shim() {
	[ "$braid_tunnels" -gt 0 ] || echo "tunnel:"
	echo "  ack-shim:"
	braid_options "$1" '    ' $(braid_settings tunnel.ack-shim)
	local braid_exclusions=0
	config_foreach braid_exclusion ack_shim_exclude
}

braid_stream_match() {
	braid_matches=$((braid_matches + 1))
	[ "$braid_matches" -gt 1 ] || echo "  match:"
	braid_rule "$1" '    '
}

braid_stream_exclusion() {
	braid_exclusions=$((braid_exclusions + 1))
	[ "$braid_exclusions" -gt 1 ] || echo "  exclude:"
	braid_rule "$1" '    '
}

braid_stream_acceptance() {
	braid_acceptances=$((braid_acceptances + 1))
	[ "$braid_acceptances" -gt 1 ] || echo "  accept:"
	braid_rule "$1" '    '
}

braid_streams() {
	echo "streams:"
	braid_options "$1" '  ' $(braid_settings streams)
	braid_list "$1" '  ' from from
	local braid_matches=0 braid_exclusions=0 braid_acceptances=0
	config_foreach braid_stream_match streams_match
	config_foreach braid_stream_exclusion streams_exclude
	config_foreach braid_stream_acceptance streams_accept
}

braid_forward() {
	local port
	config_get port "$1" port
	braid_forwards=$((braid_forwards + 1))
	[ "$braid_forwards" -gt 1 ] || echo "forwards:"
	echo "  - port: $(braid_quoted "$port")"
	braid_options "$1" '    ' protocol to source
	braid_list "$1" '    ' from from
}

braid_class() {
	braid_classes=$((braid_classes + 1))
	[ "$braid_classes" -gt 1 ] || echo "  classes:"
	braid_map "$1" '    ' '- class' protocol:protocol ports:ports dscp:dscp policy:policy delivery:delivery |
		sed 's/- class: /- /'
}

braid_dns() {
	echo "dns:"
	braid_list "$1" '  ' server servers
	braid_list "$1" '  ' domain domains
}

braid_recovery() {
	echo "recovery:"
	braid_options "$1" '  ' $(braid_settings recovery)
	local braid_classes=0
	config_foreach braid_class class
}

braid_yaml() {
	local braid_uplinks=0 braid_peers=0 braid_tunnels=0 braid_forwards=0
	config_foreach braid_gateway gateway
	config_foreach braid_device device
	config_foreach braid_uplink uplink
	config_foreach braid_peer peer
	config_foreach braid_tunnel tunnel
	config_foreach braid_shim ack_shim
	config_foreach braid_streams streams
	config_foreach braid_dns dns
	config_foreach braid_forward forward
	config_foreach braid_recovery recovery
}
