#!/bin/sh
# Installs agentsite, or removes it: curl -fsSL @BASE_URL@/install.sh | sh
# Options follow "sh -s --", for example: curl -fsSL @BASE_URL@/install.sh | sh -s -- --dry-run
# "make release" fills in the address and the keys. POSIX sh; everything is in functions, so that nothing of a
# script runs whose download was cut.
set -eu

base=@BASE_URL@
sources=/etc/apt/sources.list.d/agentsite.sources
keyring=/usr/share/keyrings/agentsite.asc

# apt verifies the repository by this OpenPGP certificate.
apt_key() {
	cat <<'END'
@APT_KEY@
END
}

# ssh-keygen verifies SHA256SUMS by these keys.
release_keys() {
	cat <<'END'
@RELEASE_KEY@
END
}

usage() {
	cat <<END
usage: install.sh [option]...
  --dry-run            show what would be done, and do nothing
  --channel beta       versions that are tried out (default: stable)
  --version VERSION    this version; with apt also an older one
  --uninstall          remove the program; configuration and data stay
  --purge              remove configuration, data and the site's key too
  --no-signature       without apt: trust the connection to the server alone
END
}

fail() {
	echo "install.sh: $*" >&2
	exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# run runs a command, or shows it.
run() {
	if [ "$dry" = yes ]; then
		echo "  would run: $*"
	else
		"$@"
	fi
}

# download FILE saves a file of the release, with curl over the protocol of its address only.
download() {
	if have curl; then
		curl -fsSL --proto "=${base%%:*}" --connect-timeout 30 -o "$tmp/$1" "$base/$1" || fail "cannot download $base/$1"
	elif have wget; then
		wget -q -O "$tmp/$1" "$base/$1" || fail "cannot download $base/$1"
	else
		fail "curl or wget is needed"
	fi
}

# bits prints whether programs of this system have 32 or 64 bits; the kernel may differ.
bits() {
	# The fifth byte of an ELF file is 1 for 32 bits and 2 for 64.
	if [ "$(dd if=/proc/self/exe bs=1 skip=4 count=1 2>/dev/null | od -An -tu1 | tr -d ' ')" = 1 ]; then
		echo 32
	else
		echo 64
	fi
}

# architecture prints the name of the system's files in a release.
architecture() {
	if [ "$method" = apt ]; then
		arch=$(dpkg --print-architecture)
	else
		case $(uname -s)/$(uname -m)/$([ "$(uname -s)" = Darwin ] || bits) in
		Linux/x86_64/64) arch=amd64 ;;
		Linux/aarch64/64 | Linux/arm64/64) arch=arm64 ;;
		Linux/arm*/* | Linux/aarch64/32) arch=armhf ;;
		Darwin/arm64/) arch=darwin-arm64 ;;
		Darwin/x86_64/) arch=darwin-amd64 ;;
		*) arch="$(uname -s) $(uname -m)" ;;
		esac
	fi
	case $arch in
	armhf | arm64 | amd64 | darwin-*) ;;
	*) fail "there is no agentsite for $arch, only for Linux (armhf, arm64, amd64) and macOS" ;;
	esac
}

# choose sets method, sudo and prefix.
choose() {
	sudo='' prefix=/usr/local
	method=tarball
	if [ "$(uname -s)" = Linux ] && have apt-get && have dpkg; then
		method=apt
	fi
	[ "$(id -u)" != 0 ] || return 0
	if [ "$method" = apt ] && have sudo; then
		sudo=sudo
	else
		method=tarball prefix=$HOME/.local
	fi
}

apt_fresh() { # only of this repository; a failed signature is an error
	run $sudo apt-get -q update -o Dir::Etc::sourcelist="$sources" -o Dir::Etc::sourceparts=- -o APT::Get::List-Cleanup=0 \
		-o APT::Update::Error-Mode=any </dev/null && offered && return 0
	[ "${new:-}" != yes ] || run $sudo rm -f "$sources" "$keyring" \
		/var/lib/apt/lists/"$(echo "${base#*://}/apt/dists/$channel" | tr / _)"_* # which apt would compare with
	fail "apt refuses the package source: nothing was installed"
}

# offered fails where the index of a new source is that of another channel, of which apt only warns.
offered() {
	[ "${new:-}" != yes ] || [ "$dry" = yes ] ||
		apt-get -qqs install --allow-downgrades "agentsite/$channel" </dev/null >/dev/null
}

# built prints when a program was built, as digits; nothing where it does not run.
built() {
	{ "$1" version --json </dev/null || :; } 2>/dev/null | sed -n 's/.*"built": *"\([^"]*\)".*/\1/p' | tr -dc 0-9
}

install_apt() {
	package=agentsite
	if [ -n "$version" ]; then
		package=agentsite=$(echo "${version#v}" | sed 's/-\([abr]\)/~\1/') # as Debian orders pre-releases
	fi
	cat <<END
This installs agentsite for $arch with apt:
  - the key of its packages:  $keyring
  - their source:             $sources ($base/apt, $channel)
  - the package:              $package, whose service starts
${sudo:+It uses sudo for that. }To undo it: install.sh --uninstall, or --purge.
END
	apt_key >"$tmp/key"
	cat >"$tmp/sources" <<END
Types: deb
URIs: $base/apt
Suites: $channel
Components: main
Signed-By: $keyring
END
	[ -e "$sources" ] || new=yes
	run $sudo install -D -m 644 "$tmp/key" "$keyring"
	run $sudo install -D -m 644 "$tmp/sources" "$sources"
	apt_fresh
	run $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --allow-downgrades "$package" </dev/null
	[ "$dry" = no ] || return 0
	cat <<'END'

agentsite is installed. Next:
  sudo journalctl -u agentsite     shows how to claim the site, for 15 minutes after its start
  sudo agentsite read              its sensors
  sudo agentsite update            a newer version, or: sudo apt update && sudo apt upgrade
END
}

install_tarball() {
	[ "$channel" = stable ] || fail "--channel needs apt"
	cat <<END
This installs the program agentsite for $arch without apt:
  - downloads:  $base/SHA256SUMS with its signature, and the archive
  - installs:   $prefix/bin/agentsite, and manual pages in $prefix/share/man/man1
No service is set up. To undo it: install.sh --uninstall.
END
	if [ "$signature" = yes ] && ! have ssh-keygen; then
		fail "ssh-keygen is needed to verify the signature: install OpenSSH's client, or use --no-signature to trust the connection alone"
	fi
	if [ "$signature" = no ] && ! have curl; then
		# wget follows redirects to plain HTTP, and that of BusyBox verifies no certificate.
		fail "--no-signature needs curl, which verifies the connection: install curl or OpenSSH's client"
	fi
	if [ "$dry" = yes ]; then
		echo "  would download, verify and install"
		return
	fi
	download SHA256SUMS
	if [ "$signature" = yes ]; then
		download SHA256SUMS.sig
		release_keys >"$tmp/signers"
		ssh-keygen -Y verify -f "$tmp/signers" -I release@agentsite -n agentsite-release -s "$tmp/SHA256SUMS.sig" \
			<"$tmp/SHA256SUMS" >/dev/null || fail "the signature of $base/SHA256SUMS is wrong: nothing was installed"
	fi
	name=${version#v}
	archive=$(sed -n "s/^[0-9a-f]\{64\}  \(agentsite_${name:-[0-9][A-Za-z0-9.+~-]*}_$arch\.tar\.gz\)\$/\1/p" "$tmp/SHA256SUMS" | head -n 1)
	[ -n "$archive" ] || fail "the release has no archive ${version:+of $version }for $arch"
	download "$archive"
	(cd "$tmp" && grep "  $archive\$" SHA256SUMS | sha256 -c >/dev/null) || fail "$archive is damaged: nothing was installed"
	gzip -dc "$tmp/$archive" | (cd "$tmp" && tar -xf -)
	from=$tmp/${archive%.tar.gz}
	was=$(built "$prefix/bin/agentsite") now=$(built "$from/agentsite")
	if [ -z "$version" ] && [ "${was:-0}" -gt "${now:-${was:-0}}" ]; then
		fail "$base has an older version than this computer, which may lack fixes: --version installs it nevertheless"
	fi
	mkdir -p "$prefix/bin" "$prefix/share/man/man1"
	cp "$from/agentsite" "$prefix/bin/agentsite.new"
	chmod 755 "$prefix/bin/agentsite.new"
	mv "$prefix/bin/agentsite.new" "$prefix/bin/agentsite"
	cp "$from"/man/*.gz "$prefix/share/man/man1/"
	"$prefix/bin/agentsite" version
	cat <<END

agentsite is installed. Next:
  ${path}agentsite demo      a simulated greenhouse
  ${path}agentsite run       a site with what is wired to this computer
END
}

sha256() {
	if have sha256sum; then
		sha256sum "$@"
	else
		shasum -a 256 "$@"
	fi
}

uninstall() {
	if have dpkg && dpkg -s agentsite >/dev/null 2>&1; then
		if [ "$(id -u)" != 0 ]; then
			have sudo || fail "agentsite is installed as a package: run this as root"
			sudo=sudo
		fi
		echo "This removes the package agentsite and its package source${sudo:+, with sudo}."
		run $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q "$1" -y agentsite </dev/null
		run $sudo rm -f "$sources" "$keyring"
		left /etc/agentsite /var/lib/agentsite "$HOME/.config/agentsite"
		return
	fi
	echo "This removes $prefix/bin/agentsite and its manual pages."
	run rm -f "$prefix/bin/agentsite" "$prefix"/share/man/man1/agentsite.1.gz "$prefix"/share/man/man1/agentsite-*.1.gz
	[ "$1" != purge ] || run rm -rf "$HOME/.local/state/agentsite"
	left "$HOME/.local/state/agentsite" "$HOME/.config/agentsite"
}

# left names what is still there.
left() {
	for file in "$@"; do
		[ ! -e "$file" ] || echo "still there: $file"
	done
}

main() {
	dry=no signature=yes channel=stable version='' action=install
	while [ $# -gt 0 ]; do
		case $1 in
		--dry-run) dry=yes ;;
		--no-signature) signature=no ;;
		--uninstall) action=remove ;;
		--purge) action=purge ;;
		--channel | --version)
			[ $# -gt 1 ] || fail "$1 needs a value"
			[ "$1" = --version ] || channel=$2
			[ "$1" = --channel ] || version=$2
			shift
			;;
		-h | --help) usage && exit 0 ;;
		*) usage >&2 && fail "there is no option $1" ;;
		esac
		shift
	done
	case $channel in stable | beta) ;; *) fail "a channel is stable or beta, not $channel" ;; esac
	case $version in *[!A-Za-z0-9.+~-]*) fail "a version is such as v1.2.3, not $version" ;; esac
	choose
	if [ "$action" != install ]; then
		uninstall "$action"
		return
	fi
	case $base in
	https://?* | http://?*) ;;
	*) fail "this copy is not from a release: get the one beside the release's files" ;;
	esac
	path=
	case :$PATH: in *":$prefix/bin:"*) ;; *) path=$prefix/bin/ ;; esac
	architecture
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	trap 'exit 1' HUP INT TERM
	"install_$method"
}

{ main "$@"; } # a cut line is a syntax error
