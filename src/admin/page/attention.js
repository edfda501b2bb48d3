/*
 * attention.js -- what needs attention, in the server's own sentences, and who: clients that are absent,
 * names in conflict, and those who hold what others wait for.
 *
 * Waiting requests are shown once, with the client that blocks them: it is what can be done
 * something about.
 */

// Those who block others, as the server counts them: those who do not answer before all, then most
// requests first.
function blockers() {
    const status = state.status || {}, groups = new Map();
    const group = holder => {
        if (!groups.has(holder.id))
            groups.set(holder.id, {id: holder.id, holder, count: 0, oldestSeconds: 0,
                isSilent: false, rows: state.blocked.get(holder.id) || []});
        return groups.get(holder.id);
    };
    for (const holder of status.blockers || [])
        Object.assign(group(holder), {count: holder.waiters,
            oldestSeconds: holder.oldest_wait_seconds});
    for (const holder of status.silent_holders || []) {
        const of = group(holder);
        Object.assign(of, {isSilent: true, silentSeconds: holder.silent_seconds,
            count: Math.max(of.count, holder.waiters),
            oldestSeconds: Math.max(of.oldestSeconds, holder.blocked_seconds)});
    }
    return [...groups.values()].sort((a, b) => b.isSilent - a.isSilent || b.count - a.count ||
        b.oldestSeconds - a.oldestSeconds);
}

// "a, b and 3 more", or "a, b and others" where it is not known how many.
function firstOf(parts, max, isAll) {
    return parts.slice(0, max).flatMap((part, i) => [i === 0 ? '' : i + 1 === parts.length
        ? ' and ' : ', ', part]).concat(parts.length <= max ? '' : isAll
        ? ` and ${count(parts.length - max)} more` : ' and others');
}

function blockerItem(group) {
    const waiting = new Map(group.rows.map(row => [row.client, row]));
    const files = [...new Set(group.rows.map(row => row.file))];
    const isAll = group.rows.length < BLOCKED_MAX;
    return {key: 'b' + group.id, look: group.isSilent ? 'bad' : 'warn',
        word: group.isSilent ? 'silent' : 'blocks', text: [
            clientLink(group.id, clientText(group.holder)), ' blocks ' +
            plural(group.count, 'request') + ', ' + (group.count === 1 ? 'for ' : 'oldest ') +
            duration(group.oldestSeconds), files.length ? [' on ', firstOf(files.map(fileLink), 2, isAll)]
                : null,
            waiting.size ? ['; waiting: ', firstOf([...waiting.values()].map(row =>
                clientLink(row.client, clientText(row))), 3, isAll)] : null,
            '.', group.isSilent ? [` It has been silent for ${duration(group.silentSeconds)} and ` +
            'does not answer. See whether it is gone, then release it: ', h('span',
                {class: 'remedy'}, command(`holdfast check-client ${group.holder.address}`),
                command(`holdfast release ${group.id}`))] : null]};
}

function absentItem(client) {
    const isGivenUp = client.state === 'given_up';
    return {key: 'x' + client.id, look: 'bad', word: isGivenUp ? 'unreachable' : 'crashed',
        text: [clientLink(client.id, clientText(client)), ' at ', address(client.address), ' ' +
            (isGivenUp ? 'could not be notified; the next start tries again.'
                : 'is unreachable.') +
            (client.locks || !isGivenUp ? ` ${plural(client.locks, 'lock')} at risk.` : '')]};
}

function unnotifiedItem(row) {
    return {key: 'n' + row.client, look: 'warn', word: 'not notified', text: [
        clientLink(row.client, clientText(row)), ' at ', address(row.address),
        ` has not been notified${isMonitor() ? ' of the reboot of this machine' : ''} yet: ` +
        plural(row.attempt, 'attempt') + (row.next_try_seconds === null ? '.'
            : `, next in ${duration(row.next_try_seconds)}.`)]};
}

function conflictItem(pair) {
    return {key: ['c', pair.id, pair.refused_address].join(' '), look: 'warn',
        word: 'name conflict', text: [`${clientText(pair)} at `, address(pair.refused_address),
            `, heard from ${ago(pair.refused_last_seen)}, is refused what `, clientLink(pair.id,
                clientText(pair)), ' holds at ', address(pair.address), ', heard from ' +
            `${ago(pair.last_seen)}. ` +
            (pair.can_move ? 'If both are the same host: ' : 'Both hold locks; if both are ' +
            'the same host: '), command(pair.can_move
            ? `holdfast move ${pair.id} ${pair.refused_address}`
            : `holdfast release ${pair.id}`)]};
}

function hostItem(host) {
    return {key: 'h' + host.id, look: 'warn', word: host.address ? 'upcall owed' : 'not resolved',
        text: [clientLink(host.id, clientText(host)), host.address
            ? ' rebooted, and the lock manager has not been told yet.'
            : ' does not resolve: it can be neither notified nor believed.']};
}

function sentenceItem(sentence) {
    return {key: 's' + sentence, look: 'bad', word: 'attention',
        text: sentence[0].toUpperCase() + sentence.slice(1) + '.'};
}

// Who is missing in a recovery is named above, with what is at stake.
function absentElsewhere() {
    const grace = state.status && state.status.grace;
    return grace && (grace.active || grace.unsettled_locks > 0)
        ? state.absent.filter(client => !client.unsettled_locks) : state.absent;
}

function attention() {
    const status = state.status, groups = blockers(), absent = absentElsewhere();
    const conflicts = status && status.name_conflicts || [];
    const hosts = isMonitor() ? status.hosts.waiting_for.filter(row => !row.address ||
        row.upcall_owed) : [];
    const unnotified = state.unnotified.filter(row => (row.result === 'given_up' ||
        ['waiting', 'calling'].includes(row.result) && row.attempt > 0) &&
        !state.absent.some(client => client.id === row.client) && !state.missing.has(row.client));
    const items = [...sentences().map(sentenceItem), ...groups.slice(0, NAMED_MAX).map(blockerItem),
        ...absent.slice(0, NAMED_MAX).map(absentItem),
        ...unnotified.slice(0, NAMED_MAX).map(unnotifiedItem),
        ...hosts.slice(0, NAMED_MAX).map(hostItem),
        ...conflicts.slice(0, NAMED_MAX).map(conflictItem)];
    const more = [[groups, '#/locks', 'client that blocks others', 'clients that block others',
        status && status.blockers_more],
        [absent, '#/clients', 'unreachable client', 'unreachable clients'],
        [unnotified, '#/notifications', 'client not notified', 'clients not notified'],
        [conflicts, '#/', 'name conflict', 'name conflicts']];
    const hasTrouble = status && (troublesOf(status).length > 0 || status.grace.active);
    return h('section', {class: staleClass(), id: 'attention'},
        h('div', {class: 'head'}, h('h2', null, 'Needs attention')),
        h('div', {class: 'sheet'}, items.length === 0
            ? empty(hasTrouble ? 'Nothing else needs attention' : 'Nothing needs attention',
                isMonitor() ? 'Hosts that are unreachable, names that do not resolve and upcalls ' +
                    'that the lock manager has not answered are listed here.'
                : 'Clients that block others, are unreachable or crashed, and name conflicts are ' +
                    'listed here.')
            : h('ul', {class: 'lines'}, items.map(item => h('li', {key: item.key},
                tag(item.word, item.look), h('span', {class: 'what'}, item.text))),
            more.filter(([list, , , , isCut]) => isCut || list.length > NAMED_MAX)
                .map(([list, href, one, many, isCut]) => h('li', {key: many}, h('a', {href}, isCut
                    ? `and more ${many}` : `and ${count(list.length - NAMED_MAX)} more ` +
                    (list.length - NAMED_MAX === 1 ? one : many)))))));
}
