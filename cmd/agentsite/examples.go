package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// examples are those of the commands that have no Example of their own, by their words; lines are separated by \n.
var examples = map[string]string{
	"":                      "agentsite demo\nagentsite status\nagentsite help set",
	"accept":                "agentsite accept agentsite://z6Mk…/grant.…/shed@192.168.1.20:8474",
	"agents pause":          "agentsite agents pause frost",
	"agents remove":         "agentsite agents remove frost",
	"agents resume":         "agentsite agents resume frost",
	"backup":                "agentsite backup shed.backup --history\nagentsite backup me.backup --owner",
	"check":                 "agentsite check\nagentsite check greenhouse.yaml",
	"clock":                 "agentsite clock\nagentsite clock --set",
	"completion":            "agentsite completion bash",
	"completion bash":       "source <(agentsite completion bash)",
	"completion fish":       "agentsite completion fish | source",
	"completion powershell": "agentsite completion powershell",
	"completion zsh":        "source <(agentsite completion zsh)",
	"config check":          "agentsite config check agentsite.yaml --site shed",
	"config replace":        "agentsite config replace agentsite.yaml --site shed",
	"console":               "sudo agentsite console --data /var/lib/agentsite",
	"demo":                  "agentsite demo\nagentsite demo --data ~/demo",
	"discover":              "agentsite discover",
	"doctor":                "agentsite doctor\nsudo agentsite doctor\nagentsite doctor --config new.yaml",
	"grants":                "agentsite grants\nagentsite grants --site shed",
	"identity":              "agentsite identity --card -\nagentsite identity --certificate --site shed >shed.pem",
	"llm":                   "agentsite llm check gardener",
	"notify":                "agentsite notify test\nagentsite notify phones",
	"notify allow":          "agentsite notify allow chrome-on-android",
	"notify forget":         "agentsite notify forget chrome-on-android",
	"notify phones":         "agentsite notify phones",
	"notify test":           "agentsite notify test",
	"open":                  "agentsite open\nagentsite open --no-browser --port 8480",
	"sim":                   "agentsite sim list\nagentsite sim set climate/temperature 3",
	"sim list":              "agentsite sim list",
	"owners":                "agentsite owners\nagentsite owners --site shed",
	"owners add":            "agentsite owners add did:key:z6Mk… --site shed",
	"owners recover":        "agentsite owners recover 0123456789abcdef0123456789abcdef --site shed",
	"owners recovery":       "agentsite owners recovery --site shed",
	"owners remove":         "agentsite owners remove did:key:z6Mk… --site shed",
	"ping":                  "agentsite ping shed\nagentsite ping --site shed -c 3",
	"points":                "agentsite points\nagentsite points --site shed --json",
	"prepare":               "sudo agentsite prepare\nsudo agentsite prepare --config /etc/agentsite/agentsite.yaml",
	"public":                "agentsite public\nagentsite public --json",
	"realm":                 "agentsite realm new home\nagentsite realm list",
	"realm join":            "agentsite realm join public",
	"realm leave":           "agentsite realm leave home",
	"realm list":            "agentsite realm list",
	"realm new":             "agentsite realm new home",
	"reload":                "agentsite reload\nagentsite reload --site shed",
	"reset":                 "agentsite reset\nagentsite reset --site shed",
	"restore":               "agentsite restore shed.backup",
	"revoke":                "agentsite revoke kitchen\nagentsite revoke did:key:z6Mk… --site shed",
	"rules pause":           "agentsite rules pause frost",
	"rules resume":          "agentsite rules resume frost",
	"run":                   "agentsite run\nagentsite run --config greenhouse.yaml --data ~/greenhouse",
	"safe":                  "sudo agentsite safe",
	"schema":                "agentsite schema >agentsite.schema.json",
	"sites":                 "agentsite sites\nagentsite sites --json",
	"sites forget":          "agentsite sites forget shed",
	"stop":                  "agentsite stop\nagentsite stop --site shed",
	"tasks answer":          "agentsite tasks answer 3AJ2TS5ZWQ4C7PLM6XKD2F7V5E yes",
	"tasks cancel":          "agentsite tasks cancel 3AJ2TS5ZWQ4C7PLM6XKD2F7V5E",
	"tasks show":            "agentsite tasks show 3AJ2TS5ZWQ4C7PLM6XKD2F7V5E",
	"tasks watch":           "agentsite tasks watch 3AJ2TS5ZWQ4C7PLM6XKD2F7V5E",
	"token":                 "agentsite token add kitchen 'read climate/*' --until 30d\nagentsite token list",
	"token list":            "agentsite token list",
	"token revoke":          "agentsite token revoke kitchen",
	"tools":                 "agentsite tools\nagentsite tools --json",
	"version":               "agentsite version\nagentsite --version",
}

// addExamples gives the commands without an example those of the list.
func addExamples(cmd *cobra.Command) {
	if !cmd.HasExample() {
		name := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name())
		if text := examples[strings.TrimPrefix(name, " ")]; text != "" {
			cmd.Example = "  " + strings.ReplaceAll(text, "\n", "\n  ")
		}
	}
	for _, sub := range cmd.Commands() {
		addExamples(sub)
	}
}
