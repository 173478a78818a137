package notify

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/smtp"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"agentsite/node/outbox"
	"agentsite/transport/web/outbound"
)

// maxAnswers bounds what a mail server may say.
const maxAnswers = 64 << 10

// checkMail checks the keys of e-mail, and refuses them for another receiver.
func (r Receiver) checkMail() (key string, err error) {
	if r.Mail == "" {
		for _, of := range [][2]string{{"server", r.Server}, {"from", r.From}, {"user", r.User}} {
			if of[1] != "" {
				return of[0], errors.New("is of e-mail")
			}
		}
		return "", nil
	}
	const example = "takes an address such as ann@example.org"
	host, port, err := net.SplitHostPort(r.Server)
	n, number := strconv.ParseUint(port, 10, 16)
	switch {
	case !isAddress(r.Mail):
		return "mail", errors.New(example)
	case r.From != "" && !isAddress(r.From):
		return "from", errors.New(example)
	case err != nil || number != nil || n == 0 || host == "" || !isPlain(host):
		return "server", errors.New("takes a mail server with its port, such as mail.example.org:465")
	case !isPlain(r.User):
		return "user", errors.New("takes a name without spaces, at most 254 characters of ASCII")
	case (r.User == "") != (r.KeyFile == ""):
		return "user", errors.New("and key_file, with its password, come together")
	}
	return "", nil
}

func isPlain(text string) bool {
	return len(text) <= 254 && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

func isAddress(text string) bool {
	name, host, ok := strings.Cut(text, "@")
	return ok && name != "" && host != "" && isPlain(text) && !strings.ContainsAny(text, `<>()[],;:\"`) && !strings.Contains(host, "@")
}

// mailer sends e-mail.
type mailer struct {
	Receiver
	world *World
}

// Send implements outbox.Sender. Nothing is sent, and no password, on a connection without TLS.
func (s *mailer) Send(ctx context.Context, m outbox.Message) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	password, err := s.readKey(s.world.Secret)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(s.Server)
	if err != nil {
		return err
	}
	conn, err := outbound.Dialer(host).DialContext(ctx, "tcp", s.Server)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	deadline, _ := ctx.Deadline()
	conn.SetDeadline(deadline)
	err = s.talk(&bounded{Conn: conn, left: maxAnswers}, host, port == "465", password, m)
	var said *textproto.Error
	if errors.As(err, &said) { // without the server's words
		err = fmt.Errorf("%s answered %d", s.Server, said.Code)
		if said.Code == 552 { // it is too long
			return &outbox.Refused{Err: err}
		}
		if said.Code/100 == 5 {
			return &outbox.Later{Err: err, After: time.Hour}
		}
	} else if err != nil {
		err = outbound.Quiet(err, s.Server)
	}
	return err
}

// talk sends a message over a connection.
func (s *mailer) talk(conn net.Conn, host string, implicit bool, password string, m outbox.Message) error {
	config := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, RootCAs: s.world.roots}
	if implicit {
		conn = tls.Client(conn, config)
	}
	c, err := smtp.NewClient(conn, host)
	if err != nil {
		return err
	}
	if !implicit {
		if ok, _ := c.Extension("STARTTLS"); !ok {
			return fmt.Errorf("%s has no TLS (STARTTLS), so that nothing is sent", s.Server)
		}
		if err := c.StartTLS(config); err != nil {
			return err
		}
	}
	if s.User != "" {
		if err := c.Auth(smtp.PlainAuth("", s.User, password, host)); err != nil {
			return err
		}
	}
	from := cmp.Or(s.From, s.Mail)
	if err := c.Mail(from); err != nil {
		return err
	}
	if err := c.Rcpt(s.Mail); err != nil {
		return err
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(s.text(from, m)); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	c.Quit() // the server has it
	return nil
}

// text returns a message with its header (RFC 5322, RFC 2045).
func (s *mailer) text(from string, m outbox.Message) []byte {
	now, _ := s.world.Now()
	content := body(m, now)
	if at := link(m); at != "" {
		content += "\n\n" + at
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "From: %s\r\nTo: %s\r\nSubject: %s\r\nDate: %s\r\nMessage-ID: <%s@agentsite>\r\nAuto-Submitted: auto-generated\r\n"+
		"MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n",
		from, s.Mail, mime.QEncoding.Encode("utf-8", subject(s.world.Site, m)), now.UTC().Format(time.RFC1123Z), m.ID)
	code := base64.StdEncoding.EncodeToString([]byte(content))
	for len(code) > 76 {
		b.WriteString(code[:76] + "\r\n")
		code = code[76:]
	}
	b.WriteString(code + "\r\n")
	return b.Bytes()
}

// bounded is a connection of which at most so many bytes are read.
type bounded struct {
	net.Conn
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
