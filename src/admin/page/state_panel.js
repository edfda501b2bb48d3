/*
 * state_panel.js -- the state of the server at a glance, and while it recovers who is missing and what
 * is at stake.
 */

// Worst first: who cannot be reached, then who has most left to reclaim.
function missingOrder(a, b) {
    const isAway = client => client.told_seconds_ago === null && client.reached_seconds_ago === null;
    return a.isSettled - b.isSettled || isAway(b) - isAway(a) ||
        b.unsettled_locks - a.unsettled_locks;
}

function missingRow(client) {
    const all = client.reclaimed + client.unsettled_locks;
    const part = client.isSettled ? 1 : all > 0 ? client.reclaimed / all : 0;
    return h('li', {key: client.id, class: client.isSettled ? 'done' : ''},
        h('span', {class: 'break'}, clientLink(client.id, client.name || client.address),
            h('span', {class: 'soft small'}, ' ' + client.id)),
        h('div', {class: 'meter', 'aria-hidden': 'true'}, h('i', {style: {width: percent(part)}})),
        h('span', {class: 'small ' + (client.isSettled ? 'done' : 'soft')},
            missingWords(client)));
}

// What grace protects.
function atStake(grace) {
    if (!grace.active || grace.unsettled_locks === 0)
        return null;
    return h('p', {class: 'stake small'}, h('b', null, 'If grace ends now: '),
        `${plural(grace.unsettled_locks, 'lock')} of ${grace.waiting_for_more ? 'more than ' : ''}` +
        `${plural(grace.waiting_for.length, 'client')} ` +
        `${grace.unsettled_locks === 1 ? 'is' : 'are'} released, and others may take ` +
        `${grace.unsettled_locks === 1 ? 'it' : 'them'}. To end it: `,
        command('holdfast end-grace'));
}

function troubleRow(trouble) {
    return h('li', {key: trouble.key, class: trouble.isMild ? 'mild' : ''},
        h('b', null, trouble.title), ': ' + trouble.words);
}

function statePanel() {
    const what = stateNow(), grace = state.status && state.status.grace;
    const isRecovering = grace && state.link !== 'gone' &&
        (grace.active || grace.unsettled_locks > 0);
    const missing = isRecovering ? [...state.missing.values()].sort(missingOrder) : [];
    const settled = grace ? state.graceMax - grace.unsettled_locks : 0;
    // Who blocks others is named below, with the requests.
    const troubles = (what.troubles || []).filter(trouble => !trouble.isHolder);
    return h('section', {class: 'sheet state ' + what.look, 'aria-label': 'State', id: 'state'},
        h('div', {class: 'state-top'}, h('h1', {id: 'title', tabindex: '-1'}, what.title),
            what.clock ? h('span', {class: 'clock'}, what.clock) : null),
        h('p', {class: 'words'}, what.words),
        troubles.length ? h('ul', {class: 'troubles'}, troubles.map(troubleRow)) : null,
        isRecovering && state.graceMax > 0 ? h('div', {class: 'progress'},
            h('p', {class: 'small soft'}, `${count(settled)} of ` +
                `${plural(state.graceMax, 'stored lock')} reclaimed or released`),
            h('div', {class: 'meter', role: 'progressbar', 'aria-label': 'stored locks done',
                'aria-valuemin': 0, 'aria-valuemax': state.graceMax, 'aria-valuenow': settled},
            h('i', {style: {width: percent(settled / state.graceMax)}}))) : null,
        isRecovering ? atStake(grace) : null,
        missing.length ? h('ul', {class: 'missing'}, missing.slice(0, NAMED_MAX).map(missingRow))
            : null,
        missing.length > NAMED_MAX || isRecovering && grace.waiting_for_more
            ? h('p', {class: 'small more'}, h('a', {href: '#/clients'}, grace.waiting_for_more
                ? 'and more clients' : `and ${plural(missing.length - NAMED_MAX, 'client')} more`))
            : null);
}
