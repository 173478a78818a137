package mqtt

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"agentsite/agents/task"
	"agentsite/device"

	"github.com/go-json-experiment/json"
)

// asked is a skill of a hosted agent that the bridge may ask for.
type asked struct {
	agent string
	skill task.Skill
	says  string // of the agent, for people
}

const (
	most = 64 // skills that are shown
	// askEvery is the shortest time between two tasks of one skill, which are written to the card as moves are: a burst
	// of moveBurst, and then one each movePause.
	askEvery = time.Second
)

// skills returns the skills that may be asked for without arguments, by their addresses. Those that take words are
// told them.
func (b *bridge) skills(ctx context.Context) (all map[string]asked, order []string) {
	all = make(map[string]asked)
	if b.world.Tasks == nil {
		return all, nil
	}
	list, err := b.world.Tasks().Agents(ctx, b.self)
	if err != nil {
		return all, nil
	}
	for _, a := range list {
		for _, s := range a.Skills {
			address := a.Name + "/" + s.ID
			if len(all) == most || device.CheckName(a.Name) != nil || device.CheckName(s.ID) != nil {
				continue
			}
			all[address] = asked{a.Name, s, a.Description}
			order = append(order, address)
		}
	}
	return all, order
}

// describeSkills adds buttons, and entities that take words; with mu.
func (b *bridge) describeSkills(components object, there object) {
	for _, address := range b.askOrder {
		a := b.asks[address]
		topic, key := b.base()+"/ask/"+address, "ask."+keyOf(address)
		c := object{
			"platform": button, "unique_id": b.world.ID + "." + key, "name": a.agent + " " + a.skill.ID,
			"availability": []object{there}, "availability_mode": "all", "command_topic": topic + "/press",
			"json_attributes_topic": topic,
		}
		if a.skill.ID == task.TalkSkill {
			c["platform"], c["name"] = notifier, a.agent
		}
		components[key] = c
	}
}

// ask asks an agent for a task: what a button was pressed for, or what somebody said. Its topic says what became of
// that.
func (b *bridge) ask(ctx context.Context, address string, payload []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a, known := b.asks[address]
	text := strings.ToValidUTF8(string(payload), "")
	if !known || len(text) > maxAsked {
		b.ignored++
		return
	}
	r := task.Request{Agent: a.agent, Skill: a.skill.ID, Terms: terms()}
	if a.skill.ID == task.TalkSkill {
		r.Skill, r.Text = "", text
	}
	key := rand.Text()
	r.Key = &key
	b.work("ask/"+address, func() error {
		t, err := b.world.Tasks().Ask(ctx, b.self, r)
		says := struct {
			Task    string `json:"task,omitzero"`
			Refused string `json:"refused,omitzero"`
		}{Task: t.ID}
		if err != nil {
			says.Refused = err.Error()
		}
		if text, failed := json.Marshal(says); failed == nil {
			b.link.publish(message{b.base() + "/ask/" + address, text, false}, true)
		}
		device.Sleep(ctx, max(askEvery, b.pause(address)))
		return err
	})
}

// pause notes that a skill was asked, and returns how long it is not asked again.
func (b *bridge) pause(address string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	full := later(time.Now(), b.askFull[address]).Add(movePause)
	b.askFull[address] = full
	return time.Until(full) - (moveBurst-1)*movePause
}
