package httpsig

import (
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// input is a Signature-Input with one signature.
type input struct {
	label            string
	components       []string
	params           string // components and parameters as they are signed
	created, expires int64
	nonce, keyID     string
}

// parseInput parses a Signature-Input: a dictionary of RFC 9651 with one member, an inner list of
// strings with parameters. A parameter or a component that is not of the profile is refused: it
// would change the meaning of the others.
func parseInput(text string) (in input, err error) {
	p := parser{strings.Trim(text, " ")}
	if in.label = p.key(); in.label == "" || !p.take("=(") {
		return in, malformed("Signature-Input has to be sig1=(…);…")
	}
	for p.spaces(); !p.take(")"); p.spaces() {
		c, ok := p.text()
		if !ok || c == "" || c != strings.ToLower(c) || strings.ContainsAny(c, ` "\`) || slices.Contains(in.components, c) || len(in.components) == maxComponents {
			return in, malformed("Signature-Input has to list at most %d components, each once, in quotation marks", maxComponents)
		}
		if in.components = append(in.components, c); !strings.HasPrefix(p.rest, " ") && !strings.HasPrefix(p.rest, ")") {
			return in, malformed("component %q of Signature-Input has parameters, which this site does not know", c)
		}
	}
	in.params = `("` + strings.Join(in.components, `" "`) + `")`
	if len(in.components) == 0 {
		in.params = "()"
	}
	seen := make(map[string]bool)
	for p.take(";") {
		p.spaces()
		name := p.key()
		if name == "" || seen[name] || !p.take("=") {
			return in, malformed("a parameter of Signature-Input is malformed, or there twice")
		}
		seen[name] = true
		var ok bool
		var value, alg string
		switch name {
		case "created":
			in.created, ok = p.integer()
			value = strconv.FormatInt(in.created, 10)
		case "expires":
			in.expires, ok = p.integer()
			value = strconv.FormatInt(in.expires, 10)
		case "nonce":
			in.nonce, ok = p.text()
			value, err = quote(in.nonce)
		case "keyid":
			in.keyID, ok = p.text()
			value, err = quote(in.keyID)
		case "alg":
			if alg, ok = p.text(); alg != "ed25519" {
				return in, malformed("only the algorithm ed25519 is known here")
			}
			value, err = quote(alg)
		default:
			return in, malformed("the parameter %q of Signature-Input is not known here", name)
		}
		if !ok || err != nil {
			return in, malformed("the parameter %s of Signature-Input is malformed", name)
		}
		in.params += ";" + name + "=" + value
	}
	for _, name := range []string{"created", "expires", "nonce", "keyid"} {
		if !seen[name] || name == "nonce" && in.nonce == "" {
			return in, malformed("Signature-Input needs the parameter %s", name)
		}
	}
	if p.rest != "" {
		return in, malformed("Signature-Input has to have one signature, and nothing after it")
	}
	return in, nil
}

// parseBytes parses a dictionary with one member, of bytes.
func parseBytes(text string) (label string, b []byte, err error) {
	p := parser{strings.Trim(text, " ")}
	label = p.key()
	if label == "" || !p.take("=:") || !strings.HasSuffix(p.rest, ":") {
		return "", nil, errors.New("it is not bytes in base64 between colons")
	}
	b, err = base64.StdEncoding.Strict().DecodeString(strings.TrimSuffix(p.rest, ":"))
	if strings.ContainsAny(p.rest, "\r\n") {
		err = errors.New("a line ends in it")
	}
	return label, b, err
}

// quote returns a text as a string of RFC 9651.
func quote(text string) (string, error) {
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' {
			return "", errors.New("only the printable letters of ASCII are possible in a parameter of a signature")
		}
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`, nil
}

// parser reads the parts of a structured field.
type parser struct{ rest string }

func (p *parser) take(prefix string) (ok bool) {
	p.rest, ok = strings.CutPrefix(p.rest, prefix)
	return ok
}

func (p *parser) spaces() { p.rest = strings.TrimLeft(p.rest, " ") }

// key reads a name; "" for none.
func (p *parser) key() string {
	n := 0
	for n < len(p.rest) && n < 64 {
		c := p.rest[n]
		if !(c >= 'a' && c <= 'z' || c == '*' || n > 0 && (c >= '0' && c <= '9' || strings.IndexByte("_-.", c) >= 0)) {
			break
		}
		n++
	}
	name := p.rest[:n]
	p.rest = p.rest[n:]
	return name
}

// integer reads a number of seconds.
func (p *parser) integer() (int64, bool) {
	n := len(p.rest) - len(strings.TrimLeft(p.rest, "0123456789"))
	v, err := strconv.ParseInt(p.rest[:n], 10, 64)
	p.rest = p.rest[n:]
	return v, err == nil && n <= 12
}

// text reads a string in quotation marks.
func (p *parser) text() (string, bool) {
	if !p.take(`"`) {
		return "", false
	}
	var b strings.Builder
	for i := 0; i < len(p.rest) && b.Len() <= maxText; i++ {
		c := p.rest[i]
		switch {
		case c == '"':
			p.rest = p.rest[i+1:]
			return b.String(), true
		case c == '\\':
			if i++; i == len(p.rest) || p.rest[i] != '"' && p.rest[i] != '\\' {
				return "", false
			}
			c = p.rest[i]
		case c < ' ' || c > '~':
			return "", false
		}
		b.WriteByte(c)
	}
	return "", false
}
