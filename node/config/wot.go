package config

import (
	"net/netip"
	"net/url"
)

// WoT is the section of that name: directories of W3C Web of Things.
type WoT struct {
	Directory bool   `json:"directory,omitempty" jsonschema:"whether the site is a directory, in which others register descriptions of their things, as their permissions say; off when not written"`
	Register  string `json:"register,omitempty" jsonschema:"the URL of another directory, such as https://directory.example.org, in which the site registers itself; none when not written"`
	KeyFile   string `json:"key_file,omitempty" jsonschema:"the file with the token for that directory, beside the configuration"`
}

const keyFilePattern = `^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`

var keyFileForm = lazy(keyFilePattern)

// wot checks the written values of the section.
func (r *report) wot(e entry) {
	at, text, registers := e.scalar("register")
	if registers && !isDirectory(text) {
		r.fail(at, "wot", "register takes the https URL of a directory, such as https://directory.example.org, "+
			"without user, query and fragment, not %q", clip(text))
	}
	if at, text, ok := e.scalar("key_file"); ok && (!registers || !keyFileForm().MatchString(text)) {
		r.fail(at, "wot", "key_file takes the name of a file beside the configuration, such as directory.token, "+
			"with the token for the directory under register:, and never the token itself")
	}
}

// isDirectory accepts an https URL, and an http URL of this machine.
func isDirectory(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || len(text) > 256 {
		return false
	}
	host, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && err == nil && host.IsLoopback()
}
