//go:build e2e

package home

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"net"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// exim is the configuration of Debian's Exim: two ports that take messages by TLS with a password, one without TLS, and
// one mailbox. The certificate is not for 127.0.0.2.
const exim = `primary_hostname = mail.example.org
spool_directory = DIR/spool
log_file_path = DIR/spool/%slog
local_interfaces = <; [127.0.0.1]:465 ; [127.0.0.1]:587 ; [127.0.0.1]:25 ; [127.0.0.2]:465
tls_on_connect_ports = 465
tls_advertise_hosts = ${if eq{$received_port}{25}{}{*}}
tls_certificate = DIR/cert.pem
tls_privatekey = DIR/key.pem
auth_advertise_hosts = ${if eq{$tls_in_cipher}{}{}{*}}
acl_smtp_rcpt = rcpt
begin acl
rcpt:
  accept authenticated = *
         domains = example.org
  deny
begin routers
box:
  driver = accept
  transport = box
begin transports
box:
  driver = appendfile
  directory = DIR/box
  maildir_format
  user = mail
  group = mail
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = ${if and{{eq{$auth2}{site}}{eq{$auth3}{secret}}}}
  server_set_id = $auth2
`

const mailed = `site: { name: garden }
devices:
  greenhouse: { driver: sim }
notify:
  to:
    tls: { mail: ann@example.org, server: "127.0.0.1:465", from: site@example.org, user: site, key_file: mail.password, about: [stop, message] }
    starttls: { mail: bob@example.org, server: "127.0.0.1:587", user: site, key_file: mail.password, about: [permission] }
    stranger: { mail: eve@example.org, server: "127.0.0.2:465", user: site, key_file: mail.password, about: [permission] }
    wrong: { mail: eve@example.org, server: "127.0.0.1:465", user: site, key_file: wrong.password, about: [permission] }
    plain: { mail: eve@example.org, server: "127.0.0.1:25", about: [permission] }
  page: https://board.local:8474
`

// TestMail: a real mail server takes messages by TLS and STARTTLS with a password, also what waited while it was down.
// One with a certificate for another host, one that wants another password, and one without TLS are sent nothing.
func TestMail(t *testing.T) {
	if !onOwnMachine(t) {
		return
	}
	program, _ := exec.LookPath("/usr/sbin/exim4")
	harness.Need(t, "Exim", program)
	p := newPerson(t)
	if err := os.Chmod(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	harness.MustRun(t, "mount", "-t", "tmpfs", "-o", "mode=755", "none", "/etc/exim4")
	p.write("/etc/exim4/exim4.conf", strings.ReplaceAll(exim, "DIR", p.dir), 0o644)
	p.write("mail.password", "secret\n", 0o600)
	p.write("wrong.password", "other\n", 0o600)
	p.do(`mkdir box spool
		openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=mail -addext subjectAltName=IP:127.0.0.1
		chown mail: box
		chown Debian-exim: spool key.pem`)
	p.env = append(p.env, "SSL_CERT_FILE="+filepath.Join(p.dir, "cert.pem"))
	serve := func() (end func()) {
		_, end = p.start(program, "-bdf")
		harness.WaitFor(p, time.Minute, "the mail server answers", func() bool {
			c, err := net.Dial("tcp", "127.0.0.1:587")
			if err == nil {
				c.Close()
			}
			return err == nil
		})
		return end
	}
	end := serve()
	p.site(mailed)
	said := p.do("agentsite notify test || true")
	for name, is := range map[string]string{"tls": "arrived", "starttls": "arrived", "stranger": "certificate", "wrong": "535", "plain": "TLS"} {
		ok := false
		for line := range strings.Lines(said) {
			ok = ok || strings.HasPrefix(line, name+" ") && strings.Contains(line, is)
		}
		if !ok {
			t.Errorf("%s is not %s:\n%s", name, is, said)
		}
	}
	for to, from := range map[string]string{"ann@example.org": "site@example.org", "bob@example.org": "bob@example.org"} {
		p.letter("the trial for "+to, func(m *mail.Message, subject, text string) bool {
			return m.Header.Get("To") == to && m.Header.Get("From") == from && strings.HasPrefix(subject, "garden") && text != "" && m.Header.Get("Auto-Submitted") == "auto-generated"
		})
	}
	p.do("agentsite ask notify 'das Gewächshaus ist zu heiß: 41 °C\n.\nRCPT TO:<eve@example.org>'")
	p.letter("a message", func(m *mail.Message, _, text string) bool {
		return m.Header.Get("To") == "ann@example.org" && strings.Contains(text, "das Gewächshaus ist zu heiß: 41 °C")
	})

	end()
	p.do("agentsite stop")
	p.says("has failed")
	serve()
	p.letter("the stop", func(m *mail.Message, subject, text string) bool {
		return strings.Contains(subject, "stop") && strings.Contains(text, "https://board.local:8474/#")
	})
	files, err := filepath.Glob(filepath.Join(p.dir, "box/new/*"))
	if err != nil || len(files) != 4 {
		t.Errorf("%d letters, not 4; %v", len(files), err)
	}
}

// letter waits for a letter in the mailbox.
func (p *person) letter(what string, is func(m *mail.Message, subject, text string) bool) {
	p.Helper()
	harness.WaitFor(p, 2*time.Minute, what, func() bool {
		files, _ := filepath.Glob(filepath.Join(p.dir, "box/new/*"))
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				p.Fatal(err)
			}
			m, err := mail.ReadMessage(bytes.NewReader(raw))
			if err != nil {
				p.Fatalf("%v\n%s", err, raw)
			}
			subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
			if err != nil {
				p.Fatal(err)
			}
			text, err := io.ReadAll(base64.NewDecoder(base64.StdEncoding, m.Body))
			if err != nil {
				p.Fatalf("%v\n%s", err, raw)
			}
			if is(m, subject, string(text)) {
				return true
			}
		}
		return false
	})
}
