package notify

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"agentsite/node/outbox"

	"github.com/go-json-experiment/json"
)

// mailServer is a mail server, which answers one caller as its fields say.
type mailServer struct {
	config  *tls.Config
	noTLS   bool   // it has no STARTTLS
	refuses string // the answer to RCPT; "" for 250
	endless bool   // it answers without an end
	lines   chan string
}

func (s *mailServer) serve(conn net.Conn, plain bool) {
	defer conn.Close()
	defer close(s.lines)
	in := bufio.NewReader(conn)
	say := func(line string) { fmt.Fprint(conn, line+"\r\n") }
	if s.endless {
		for {
			if _, err := conn.Write(make([]byte, 1024)); err != nil {
				return
			}
		}
	}
	say("220 hello")
	for data := false; ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		s.lines <- line
		word, _, _ := strings.Cut(line, " ")
		switch {
		case data:
			if data = line != "."; !data {
				say("250 taken")
			}
		case word == "EHLO" && plain && !s.noTLS:
			say("250-here\r\n250 STARTTLS")
		case word == "EHLO":
			say("250-here\r\n250 AUTH PLAIN")
		case word == "STARTTLS":
			say("220 go on")
			of := tls.Server(conn, s.config)
			conn, in, plain = of, bufio.NewReader(of), false
		case word == "AUTH":
			say("235 yes")
		case word == "RCPT" && s.refuses != "":
			say(s.refuses)
		case word == "DATA":
			say("354 go on")
			data = true
		case word == "QUIT":
			say("221 bye")
			return
		default:
			say("250 yes")
		}
	}
}

// mailTo sends a message to a server, and returns what that read.
func mailTo(t *testing.T, s *mailServer, implicit bool, m outbox.Message) (string, error) {
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	s.config, s.lines = &tls.Config{Certificates: web.TLS.Certificates}, make(chan string, 100)
	listens, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listens.Close()
	go func() {
		conn, err := listens.Accept()
		if err != nil {
			close(s.lines)
			return
		}
		if implicit {
			conn = tls.Server(conn, s.config)
		}
		s.serve(conn, !implicit)
	}()
	a := newAgent(map[string]Receiver{"mail": {Mail: "ann@example.org", Server: listens.Addr().String(), From: "site@example.org", User: "site", KeyFile: "mail.password"}})
	if _, err := a.Define(); err != nil {
		t.Fatal(err)
	}
	a.world.roots = x509.NewCertPool()
	a.world.roots.AddCert(web.Certificate())
	to := a.sender(a.To["mail"]).(*mailer)
	if implicit { // without its port
		conn, failed := net.Dial("tcp", to.Server)
		if failed != nil {
			t.Fatal(failed)
		}
		defer conn.Close()
		err = to.talk(conn, "127.0.0.1", true, "secret", m)
	} else {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err = to.Send(ctx, m)
	}
	var all []string
	for line := range s.lines {
		all = append(all, line)
	}
	return strings.Join(all, "\n"), err
}

// TestMail: e-mail is sent by TLS only, with a header that no text of others can add to.
func TestMail(t *testing.T) {
	m := outbox.Message{ID: "m1", Items: []outbox.Item{{Title: "greenhouse: tank is lost\r\nBcc: eve@example.org", Text: "Für 5 °C.\n.\nMAIL", Link: "https://greenhouse.local:8474/#site", Count: 1}}}
	for _, implicit := range []bool{false, true} {
		got, err := mailTo(t, new(mailServer), implicit, m)
		if err != nil {
			t.Fatal(err)
		}
		head, content, ok := strings.Cut(got[strings.Index(got, "From:"):], "\n\n")
		text, wrong := base64.StdEncoding.DecodeString(strings.ReplaceAll(strings.Split(content, "\n.\n")[0], "\n", ""))
		if !ok || wrong != nil || !strings.Contains(string(text), "Für 5 °C.\n.\nMAIL") || !strings.HasSuffix(string(text), "/#site") {
			t.Errorf("%s, %v", text, wrong)
		}
		if strings.Contains(head, "\nBcc") || !strings.Contains(head, "\nTo: ann@example.org\n") || !strings.Contains(head, "Message-ID: <m1@agentsite>") {
			t.Error(head)
		}
		if !strings.Contains(got, "MAIL FROM:<site@example.org>") || strings.Count(got, "RCPT TO:<ann@example.org>") != 1 {
			t.Error(got)
		}
	}
	var later *outbox.Later
	if got, err := mailTo(t, &mailServer{noTLS: true}, false, m); err == nil || strings.Contains(got, "AUTH") || strings.Contains(got, "MAIL") {
		t.Errorf("without TLS: %v, %s", err, got)
	}
	if _, err := mailTo(t, &mailServer{refuses: "550 its own words"}, false, m); !errors.As(err, &later) || strings.Contains(err.Error(), "words") || !strings.Contains(err.Error(), "550") {
		t.Errorf("refused: %v", err)
	}
	if _, err := mailTo(t, &mailServer{refuses: "451 later"}, false, m); err == nil || errors.As(err, new(*outbox.Later)) {
		t.Errorf("refused for now: %v", err)
	}
	if _, err := mailTo(t, &mailServer{refuses: "552 too long"}, false, m); !errors.As(err, new(*outbox.Refused)) {
		t.Errorf("refused for its length: %v", err)
	}
	if _, err := mailTo(t, &mailServer{endless: true}, false, m); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("an answer without an end: %v", err)
	}
}

// TestTelegram: the token is in the URL, and in no error.
func TestTelegram(t *testing.T) {
	server, all := receive(t, nil)
	a := newAgent(map[string]Receiver{"chat": {Telegram: "-123", KeyFile: "bot.token"}})
	if _, err := a.Define(); err != nil {
		t.Fatal(err)
	}
	a.world.telegram = server.URL
	a.world.Secret = func(string) (string, error) { return "12345:AA-b_c", nil }
	if err := a.send(t, "chat", approval); err != nil {
		t.Fatal(err)
	}
	one := all()[0]
	var c chatted
	if err := json.Unmarshal([]byte(one.body), &c); err != nil || one.path != "/bot12345:AA-b_c/sendMessage" || c.Chat != "-123" || !c.Preview.Off ||
		!strings.HasSuffix(c.Text, "\nhttps://greenhouse.local:8474/#waiting?s=greenhouse&call=HANDLE") {
		t.Errorf("%v %+v", err, one)
	}
	server.Close()
	if err := a.send(t, "chat", approval); err == nil || strings.Contains(err.Error(), "AA-b_c") {
		t.Error(err)
	}
}
