/*
 * operators.js -- what operators work with on the web page: charts, search, sorting, commands.
 *
 * Passing proves:
 *  (1) the charts show what happened before the page was opened, with axes, and the value at the
 *      pointer and at the arrow keys;
 *  (2) locks are searched by the server: one that is far behind the first 1,000 is found, by client,
 *      address, handle, path and export; a long search comes in parts, says what it left out, and
 *      one that is not answered says so; clients are searched, filtered and sorted by the server, too;
 *  (3) who blocks others is named once, with how many requests, since when, and commands in the order
 *      in which they are to be given; the numbers are the server's, however many wait; commands are
 *      copied as they are;
 *  (4) a recovery says what is lost if it ends now, worst first;
 *  (5) lines that the page writes itself have the server's time; after a release nothing says that the
 *      server restarted;
 *  (6) the server is named in title and header; tables are sorted; the configuration is shown without
 *      passwords; addresses and times are not broken.
 */
'use strict';

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const {keep, text, shows, hides, until} = require('./world.js');

module.exports = (withWorld, fakeStatus) => {

// An hour, one sample every ten seconds; the last one is of now.
function fakeSamples(nowMs) {
    return {interval_seconds: 10, last: 360, samples: Array.from({length: 360}, (_, i) => ({
        time: new Date(nowMs - 10000 * (359 - i)).toISOString(), seconds: 10, nlm_requests: 10 * i,
        nsm_requests: 0, nfs_requests: 0, bytes_read: 0, bytes_written: 0, commits: 5,
        commit_median_seconds: 0.002, commit_p99_seconds: 0.008, clients: 3, locks: i,
        waiters: i % 4}))};
}

const firstColumn = page => page.locator('tbody td:first-child a').allInnerTexts();

withWorld('the charts begin before the page', [], async (world, open) => {
    await world.peerSays('granted', 2, 'web1', 'lock', 'mail', 0, 100);
    await until('the server has taken a sample', async () =>
        JSON.parse((await world.get('/api/v1/samples')).text).samples.length > 0);
    const page = await open();
    await until('there is a curve at once', async () =>
        (await page.locator('.chart .curve').first().getAttribute('d')).length > 0);
    await shows(page, '.chart', /Locks.*1 held/s);
    // An hour of them.
    await page.context().route('**/api/v1/samples*', route => route.fulfill({json:
        fakeSamples(Date.now())}));
    await page.reload();
    await shows(page, '.chart >> nth=0', /359 per second/);
    await shows(page, '.chart >> nth=0 >> .value-axis', /500.*250.*0/s);
    await until('the time axis covers an hour', async () => {
        const marks = (await page.locator('.time-axis').first().locator('span').allInnerTexts());
        return marks.length >= 4 && marks.every(mark => /^\d\d:(00|10|15|20|30|40|45|50)$/.test(mark));
    });
    await keep(page, 'charts');
    const field = page.locator('.chart .field').first();
    await field.scrollIntoViewIfNeeded();
    const box = await field.boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await shows(page, '.tip', /^\d\d:\d\d:\d\d (179|180)(\.\d+)?$/);
    const pointer = await page.locator('.pointer').boundingBox();
    assert.ok(Math.abs(pointer.x - box.x - box.width / 2) < 5, 'the line is at the pointer');
    await keep(page, 'charts-hover');
    await page.mouse.move(0, 0);
    await until('it goes with the pointer', async () => await page.locator('.tip').count() === 0);
    await field.focus();
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('ArrowLeft');
    await shows(page, '.tip', /358$/);
    const label = await field.getAttribute('aria-label');
    assert.match(label, /Requests per second, \d\d:\d\d:\d\d: 358\./);
});

withWorld('without metrics the charts say so', ['--metrics', 'off'], async (world, open) => {
    const page = await open();
    await shows(page, '.chart >> nth=0', 'metrics are off');
});

withWorld('locks are searched by the server', [], async (world, open) => {
    for (let held = 0; held < 1010; held += 10)
        await Promise.all(Array.from({length: 10}, (_, i) => world.peerSays('granted', 2, 'crowd',
            'lock', 'bulk', 10 * (held + i), 5)));
    await world.peerSays('granted', 3, 'lonely.example', 'lock', 'needle', 0, 10);
    const page = await open({}, '#/locks');
    await shows(page, '.pager', 'locks 1–1,000 of 1,0');
    await hides(page, '#view', 'needle');
    const handle = Buffer.from('needle').toString('hex');
    for (const words of ['lonely', 'LONELY.EXAMPLE', '127.77.0.3', 'c2', handle, 'needle',
        handle.slice(2, 10)]) {
        await page.locator('#search').fill(words);
        await shows(page, '.strips', /needle.*1 lock of lonely\.example/s);
        await hides(page, '.strips', 'bulk');
    }
    await page.locator('#search').fill('nobody-has-this');
    await shows(page, '#view', /No matches.*No lock matches the search/s);
    await page.locator('#search').fill('bulk');
    await shows(page, '.pager', 'of the matching locks 1–1,000 and more');
    await keep(page, 'search');
});

// A server that takes its time: each page of the search has looked at a part of the locks.
withWorld('a long search comes in parts', [], async (world, open) => {
    await world.peerSays('granted', 2, 'web1', 'lock', 'mail', 0, 100);
    const page = await open({}, '#/locks');
    await shows(page, '.strips', 'mail');
    const {locks} = JSON.parse((await world.get('/api/v1/locks')).text);
    const named = (file, offset) => ({...locks[0], file: Buffer.from(file).toString('hex'), offset});
    const parts = {null: {locks: [], next: '7', unnamed: 0},
        7: {locks: [named('first', 0)], next: '8', unnamed: 2},
        8: {locks: [named('second', 0)], next: null, unnamed: 1}};
    let letGo;
    const held = new Promise(resolve => letGo = resolve);
    await page.context().route('**/api/v1/locks?*match=*', async route => {
        const cursor = new URL(route.request().url()).searchParams.get('cursor');
        if (cursor === '8')
            await held;
        await route.fulfill({json: parts[cursor]});
    });
    await page.locator('#search').fill('in-parts');
    await shows(page, '#view', /Searching.*first/s);
    await hides(page, '#view', 'second');
    letGo();
    await shows(page, '.strips', /first.*second/s);
    await shows(page, '#view', /may be incomplete.*3 rows left out/s);
});

withWorld('a search that is not answered says so', [], async (world, open) => {
    await world.peerSays('granted', 2, 'web1', 'lock', 'mail', 0, 100);
    const page = await open({}, '#/locks');
    await shows(page, '.strips', 'mail');
    await page.context().route('**/api/v1/locks?*match=*', () => {}); // for ever
    await page.locator('#search').fill('never');
    await shows(page, '#view', /did not answer within 10 seconds.*No list/s);
    await page.locator('#search').fill('');
    await shows(page, '.strips', 'mail');
    await hides(page, '#view', 'did not answer');
});

const exported = ['one', 'two'].map(name => fs.mkdtempSync(path.join(os.tmpdir(),
    `holdfast-web-${name}-`)));
process.on('exit', () => exported.forEach(directory => fs.rmSync(directory, {recursive: true,
    force: true})));

// --export needs root.
if (process.getuid() === 0)
    withWorld('locks by path and by export', ['--nfs-port', '0', ...exported.flatMap(directory =>
        ['--export', directory + ' *(rw)'])], async (world, open) => {
        const port = await until('it says where files are', () =>
            (/serving files port=(\d+)/.exec(world.server.said) || [])[1]);
        for (const directory of exported) {
            fs.chmodSync(directory, 0o755);
            const name = 'report-' + exported.indexOf(directory);
            fs.writeFileSync(path.join(directory, name), 'text');
            const asked = world.start(process.env.PEER, ['127.0.0.1', port, 'files', directory,
                'stat', name]);
            await asked.ended;
            await world.peerSays('granted', 2, 'web1', 'lock', 'hex:' +
                / handle ([0-9a-f]+)/.exec(asked.said)[1], 0, 100);
        }
        const page = await open({}, '#/locks');
        await shows(page, '.strips', /report-0.*report-1/s);
        await page.locator('#search').fill('REPORT-1');
        await shows(page, '.strips', 'report-1');
        await hides(page, '.strips', 'report-0');
        await page.locator('#search').fill('');
        await shows(page, '.strips', 'report-0');
        await page.locator('#export').selectOption(exported[1]);
        await hides(page, '.strips', 'report-0');
        await shows(page, '.strips', 'report-1');
        await keep(page, 'export-filter');
        await page.goto(world.url + '#/');
        await until('the charts have bytes', async () =>
            (await page.locator('.chart h2').allInnerTexts()).includes('Files'));
    });

// More than the page shows at a time; the last of them holds most.
async function crowd(world) {
    for (let host = 2; host <= 61; host += 10)
        await Promise.all(Array.from({length: 10}, (_, i) => world.peerSays('granted', host + i,
            'node' + (host + i), 'lock', 'file-' + (host + i))));
    for (const offset of [10, 20])
        await world.peerSays('granted', 62, 'zebra.example', 'lock', 'file-zebra', offset, 5);
    await world.peerSays('granted', 63, 'Zoo.example', 'lock', 'file-zoo');
}

withWorld('clients are searched by the server', [], async (world, open) => {
    await crowd(world);
    const page = await open({}, '#/clients');
    await shows(page, '.pager', '1–50 of 62');
    await hides(page, 'tbody', 'zebra');
    for (const words of ['zebra', 'ZEBRA.EXAMPLE', '127.77.0.62', 'c61', 'zeb 127.77.0.62']) {
        await page.locator('#search').fill(words);
        await shows(page, '.pager', '1–1 of 1');
        await shows(page, 'tbody', 'zebra.example');
    }
    await page.locator('#search').fill('.example');
    await shows(page, '.pager', '1–2 of 2');
    await keep(page, 'client-search');
    await page.locator('#search').fill('.example nobody');
    await shows(page, '#view', /No matches.*No client matches the search/s);
    await page.locator('#search').fill('x'.repeat(500));
    await shows(page, '#view', /No matches/s);
    await page.locator('#search').fill('a b c d e f g h i j');
    await shows(page, '#view', /No matches/s);
    await page.locator('#search').fill('');
    await shows(page, '.pager', '1–50 of 62');
    await world.peerSays('waiting', 3, 'node3', 'wait', 'file-zoo');
    await page.getByRole('button', {name: 'Waiting', exact: true}).first().click();
    await shows(page, '.pager', '1–1 of 1');
    await shows(page, 'tbody', 'node3');
    await page.getByRole('button', {name: 'In trouble', exact: true}).click();
    await shows(page, '#view', /No matches/);
    await page.getByRole('button', {name: 'Holding', exact: true}).click();
    await shows(page, '.pager', '1–50 of 62');
});

// What the page has not got is sorted, too.
withWorld('clients are sorted by the server', [], async (world, open) => {
    await crowd(world);
    const page = await open({}, '#/clients');
    const header = name => page.locator('th').getByRole('button', {name});
    await shows(page, '.pager', '1–50 of 62');
    await until('numbers in names count', async () =>
        (await firstColumn(page)).slice(0, 3).join() === 'node2,node3,node4');
    await header('Locks').click();
    await until('most locks come first', async () =>
        (await firstColumn(page)).slice(0, 2).join() === 'zebra.example,node2');
    await header('Client').click();
    await header('Client').click();
    await until('the last name comes first', async () =>
        (await firstColumn(page)).slice(0, 3).join() === 'Zoo.example,zebra.example,node61');
    await keep(page, 'sorted-by-server');
    await page.locator('#next').click();
    await shows(page, '.pager', '51–62 of 62');
    assert.strictEqual((await firstColumn(page)).at(-1), 'node2');
    assert.ok(await page.locator('#next').isDisabled());
    await page.locator('#previous').click();
    await shows(page, '.pager', '1–50 of 62');
    await until('the first page is back', async () =>
        (await firstColumn(page))[0] === 'Zoo.example');
});

withWorld('who blocks others is named once', [], async (world, open) => {
    const page = await open();
    await world.peerSays('granted', 2, 'web1', 'lock', 'mail', 0, 100);
    for (const [host, name] of [[3, 'db1'], [4, 'db2'], [5, 'db3'], [6, 'db4'], [7, 'db5']])
        await world.peerSays('waiting', host, name, 'wait', 'mail', 10 * host, 10);
    await shows(page, '#attention', new RegExp('web1 blocks 5 requests, oldest \\d+ s on mail; ' +
        'waiting: db1, db2, db3 and 2 more'));
    assert.strictEqual((await text(page, '#attention')).split('web1').length, 2, 'once');
    await shows(page, '#state', /^Ready\n/);
    await page.getByRole('link', {name: 'web1'}).first().click();
    await shows(page, '#view', /Blocks\s*5 requests.*Waiting for.*Holds.*Actions.*Details.*Identity.*Recovery/s);
    await keep(page, 'client-hierarchy');

    // More wait than are read.
    const blocker = (id, waiters) => ({id, name: 'host-' + id, address: '10.0.0.9', waiters,
        oldest_wait_seconds: 3600, last_seen: null});
    const many = fakeStatus({waiters: 20100, blockers: [blocker('c1', 20000), ...Array.from({length: 9},
        (_, i) => blocker('c' + (i + 10), 10))], blockers_more: true});
    await page.context().route('**/api/v1/status', route => route.fulfill({json: many}));
    await page.context().route('**/api/v1/waiters?*', async route => {
        const asked = new URL(route.request().url()).searchParams, limit = Number(asked.get('limit'));
        const [row] = JSON.parse((await world.get('/api/v1/waiters')).text).waiters;
        const isMost = asked.get('blocked_by') === 'c1';
        await route.fulfill({json: {waiters: Array.from({length: isMost ? limit : 1}, (_, i) =>
            ({...row, client: 'c' + (100 + i), name: 'w' + i})), next: isMost ? '1' : null}});
    });
    await page.context().route('**/api/v1/events?*', route => route.abort());
    await page.goto(world.url + '#/');
    await page.reload();
    await shows(page, '#attention', new RegExp('host-c1 blocks 20,000 requests, oldest 1 h on mail; ' +
        'waiting: w0, w1, w2 and others\\.'));
    await shows(page, '#attention', /host-c10 blocks 10 requests, oldest 1 h on mail; waiting: w0\./);
    await shows(page, '#attention', 'and more clients that block others');
    await keep(page, 'many-blocked');
    await page.context().unrouteAll();

    // A holder that does not answer for long.
    const waiter = {client: 'c2', name: 'db1', address: '127.77.0.3', svid: 1, owner: '00',
        file: '6d61696c', path: null, share: 'default', offset: 0, length: 1, exclusive: true,
        state: 'waiting', queued_at: new Date(Date.now() - 480000).toISOString(),
        waiting_seconds: 480, ahead: 0, blocked_by: {client: 'c1', name: 'host-0012',
            address: '10.0.0.5', svid: 1, last_seen: null, silent_seconds: 10800, answers: 'no'}};
    await page.context().route('**/api/v1/status', route => route.fulfill({json: fakeStatus({
        waiters: 11, silent_holders: [{id: 'c1', name: 'host-0012', address: '10.0.0.5', waiters: 11,
            blocked_seconds: 480, silent_seconds: 10800}]})}));
    await page.context().route('**/api/v1/waiters?*', route => route.fulfill({json: {waiters:
        Array.from({length: 11}, (_, i) => ({...waiter, svid: i})), next: null}}));
    await page.context().route('**/api/v1/events?*', route => route.abort());
    await page.goto(world.url + '#/');
    await page.reload();
    await shows(page, '#state', 'Ready, 1 holder silent');
    await shows(page, '#attention', /host-0012 blocks 11 requests, oldest 8 min on mail/);
    await shows(page, '#attention', /silent for 3 h and does not answer.*holdfast check-client 10\.0\.0\.5.*holdfast release c1/s);
    await hides(page, '#state', 'host-0012');
    await keep(page, 'silent-holder');
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', {name: 'Copy holdfast release c1'}).click();
    await shows(page, '#attention', 'Copied');
    assert.strictEqual(await page.evaluate(() => navigator.clipboard.readText()),
        'holdfast release c1');
});

withWorld('a recovery says what is at stake, worst first', ['--grace', '600'],
    async (world, open) => {
    const missing = (id, more) => ({id, name: 'host-' + id, address: '10.0.0.1', unsettled_locks: 1,
        reclaimed: 0, notification: 'waiting', attempts: 3, reached_seconds_ago: null,
        told_seconds_ago: null, crashed: false, ...more});
    const page = await open();
    await page.context().route('**/api/v1/status', route => route.fulfill({json: fakeStatus({
        locks: 20, grace: {active: true, remaining_seconds: 85, unsettled_locks: 12,
            waiting_for_more: false, waiting_for: [
                missing('c1', {unsettled_locks: 9, told_seconds_ago: 4, reclaimed: 8}),
                missing('c2'), missing('c3', {unsettled_locks: 2})]}})}));
    await page.context().route('**/api/v1/events?*', route => route.abort());
    await page.reload();
    await shows(page, '#state', /Recovering\s*1 min 2\d s left/);
    await shows(page, '#state', new RegExp('If grace ends now: 12 locks of 3 clients are released, ' +
        'and others may take them\\. To end it:\\s*holdfast end-grace'));
    await shows(page, '.missing', /c3.*c2.*c1/s);
    await keep(page, 'recovery-stake');
});

withWorld('the log has the server’s time, and a release is no restart', [],
    async (world, open) => {
    await world.peerSays('granted', 2, 'web1', 'lock', 'mail', 0, 100);
    const page = await open({timezoneId: 'UTC'});
    await page.addInitScript(() => {
        const real = Date.now.bind(Date);
        Date.now = () => real() + 7200000; // a browser whose clock is wrong
    });
    await page.goto(world.url + '#/log');
    await page.reload();
    await shows(page, '.log', 'New lock client web1');
    await world.kill();
    await world.serve();
    await shows(page, '.log', 'The server restarted: start 2');
    const shown = (await page.locator('.log li', {hasText: 'The server restarted'})
        .locator('time').innerText()).split(':').map(Number);
    const now = new Date(), ago = (now.getUTCHours() - shown[0]) * 60 + now.getUTCMinutes() - shown[1];
    assert.ok(((ago + 1440) % 1440) < 10, `it restarted at ${shown.join(':')}`);

    const other = await open({}, '#/log');
    await page.context().close();
    await until('the grace period can be ended', async () =>
        [200, 204, 409].includes(await world.order('DELETE', '/api/v1/grace')));
    await world.peerSays('granted', 3, 'db1', 'lock', 'wal');
    const {clients} = JSON.parse((await world.get('/api/v1/clients?client=db1')).text);
    await shows(other, '.log', 'New lock client db1');
    await world.order('DELETE', '/api/v1/clients/' + clients[0].id);
    await shows(other, '.log', 'Released 1 old lock of db1');
    assert.doesNotMatch(await text(other, '.log li:has-text("db1")'), /restart/);
    await other.goto(world.url + '#/');
    await shows(other, '#state', 'Ready');
    assert.doesNotMatch(await text(other, '#attention'), /restart/);
});

withWorld('the server is named, and its configuration shown', ['--max-locks', '5000'],
    async (world, open) => {
    const page = await open();
    await page.context().route('**/api/v1/status', route => route.fulfill({json: fakeStatus({
        host: 'nfs1.example.net'})}));
    await page.context().route('**/api/v1/events?*', route => route.abort());
    await page.reload();
    await shows(page, '#server', 'nfs1.example.net');
    await until('the title has it', async () =>
        await page.title() === 'Ready – nfs1.example.net – holdfast');
    await page.goto(world.url + '#/config');
    await shows(page, 'tbody', /max-locks.*5000.*command line/s);
    await hides(page, 'tbody', 'tracker-group');
    await page.getByRole('button', {name: 'All', exact: true}).click();
    await shows(page, 'tbody', 'tracker-group');
    await page.locator('#search').fill('max-locks-per');
    await until('the search leaves one option', async () =>
        await page.locator('tbody tr').count() === 1);
    await shows(page, 'tbody', 'max-locks-per-client');
    await keep(page, 'configuration');
});

withWorld('a password is not shown', [], async world => {
    await world.kill();
    // Nobody is there; meanwhile it says what it was told.
    const server = world.start(process.env.HOLDFASTD, ['--listen', '127.0.0.1', '--port', String(world.port),
        '--http', `127.0.0.1:${world.httpPort}`, '--no-rpcbind', '--control',
        path.join(world.directory, 'control.sock'), '--store',
        'postgres:host=127.0.0.1 port=1 user=holdfast password=hunter2']);
    const reply = await until('it answers', async () => server.exitCode !== null ||
        world.get('/api/v1/config'));
    assert.doesNotMatch(server.said, /hunter2/);
    if (server.exitCode !== null)
        return; // built without PostgreSQL
    assert.match(reply.text, /postgres:host=127\.0\.0\.1/);
    assert.doesNotMatch(reply.text, /hunter2/);
});

withWorld('tables are sorted', [], async (world, open) => {
    for (const [host, name, locks] of [[2, 'web2', 1], [3, 'web10', 3], [4, 'db1', 2]])
        for (let i = 0; i < locks; i++)
            await world.peerSays('granted', host, name, 'lock', 'file-' + name, 10 * i, 5);
    const page = await open({}, '#/clients');
    const header = name => page.locator('th').getByRole('button', {name});
    await shows(page, 'tbody', /db1.*web2.*web10/s);
    await header('Locks').click();
    await until('most locks come first', async () =>
        (await firstColumn(page)).join() === 'web10,db1,web2');
    assert.strictEqual(await page.locator('th[aria-sort]').getAttribute('aria-sort'), 'descending');
    await header('Locks').click();
    await until('and last', async () => (await firstColumn(page)).join() === 'web2,db1,web10');
    await header('Address').click();
    await until('by address', async () => (await firstColumn(page)).join() === 'web2,web10,db1');
    await keep(page, 'sorted');
    await header('Client').click();
    await header('Client').click();
    await until('numbers in names count', async () =>
        (await firstColumn(page)).join() === 'web10,web2,db1');
    for (const width of [1280, 800]) {
        await page.setViewportSize({width, height: 800});
        const broken = await page.evaluate(() => [...document.querySelectorAll(
            '.nowrap, time')].filter(node => node.getClientRects().length > 1).length);
        assert.strictEqual(broken, 0, 'addresses and times are in one line');
    }
});

withWorld('a phone has compact cards', [], async (world, open) => {
    for (let i = 2; i < 8; i++)
        await world.peerSays('granted', i, 'web' + i, 'lock', 'file-' + i);
    const page = await open({viewport: {width: 390, height: 800}, hasTouch: true}, '#/clients');
    await shows(page, 'tbody', 'web7');
    const heights = await page.locator('tbody tr').evaluateAll(rows =>
        rows.map(row => row.getBoundingClientRect().height));
    assert.ok(Math.max(...heights) <= 100, `cards of ${heights} pixels`);
    await page.goto(world.url + '#/locks');
    await shows(page, '.legend', 'The byte axis is not to scale');
});

};
