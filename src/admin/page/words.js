/*
 * words.js -- numbers, times, ranges, files and clients in words.
 */
const numbers = new Intl.NumberFormat('en-US');

function count(number) {
    return Number.isSafeInteger(number) ? numbers.format(number)
                                        : '≈' + numbers.format(number);
}

function plural(number, word) {
    return count(number) + ' ' + word + (number === 1 ? '' : 's');
}

function duration(seconds) {
    const s = Math.max(0, Math.floor(seconds));
    if (s < 60)
        return s + ' s';
    if (s < 3600)
        return Math.floor(s / 60) + ' min' + (s < 600 && s % 60 ? ' ' + s % 60 + ' s' : '');
    if (s < 86400)
        return Math.floor(s / 3600) + ' h' + (s % 3600 >= 60 ? ' ' + Math.floor(s % 3600 / 60) +
            ' min' : '');
    return Math.floor(s / 86400) + ' d' + (s % 86400 >= 3600 ? ' ' +
        Math.floor(s % 86400 / 3600) + ' h' : '');
}

// To the second, for what runs out.
function countdown(seconds) {
    const s = Math.max(0, Math.floor(seconds));
    return (s >= 3600 ? Math.floor(s / 3600) + ' h ' : '') +
        (s >= 60 ? Math.floor(s % 3600 / 60) + ' min ' : '') + s % 60 + ' s';
}

// By the server's clock. Ages stop with the last answer: what came after is not known.
function now() {
    return (state.link === 'gone' ? state.answeredMs : Date.now()) + state.skewMs;
}

function ago(time) {
    if (!time)
        return 'never';
    const seconds = (now() - Date.parse(time)) / 1000;
    return seconds < 1.5 ? 'just now' : duration(seconds) + ' ago';
}

function clockOf(ms) {
    return new Date(ms).toLocaleTimeString('en-GB');
}

// Length 0 means to the end of the file.
function rangeText(row) {
    if (row.length === 0)
        return row.offset === 0 ? 'the whole file' : 'bytes ' + count(row.offset) + ' to the end';
    if (row.length === 1)
        return 'byte ' + count(row.offset);
    return 'bytes ' + count(row.offset) + '–' + count(row.offset + row.length - 1);
}

// What files are called, by their handles, as the server said last.
const paths = new Map();

function learnPaths(rows) {
    if (paths.size > PATHS_MAX)
        paths.clear();
    for (const row of Array.isArray(rows) ? rows : [])
        if (row.path)
            paths.set(row.file, row.path);
        else
            paths.delete(row.file);
}

// A file without a name is shown by its handle; as text where it is text, which those of test
// clients are.
function fileText(hex) {
    if (paths.has(hex))
        return paths.get(hex);
    const bytes = hex.replace(/(00)+$/, '').match(/../g) || [];
    const codes = bytes.map(byte => parseInt(byte, 16));
    if (codes.length > 0 && codes.every(code => code > 32 && code < 127))
        return String.fromCharCode(...codes);
    return hex.length > 40 ? hex.slice(0, 18) + '…' + hex.slice(-18) : hex;
}

function clientText(row) {
    return row.name || row.address;
}

const told = {
    none: 'nothing to send', told: 'notified', waiting: 'not reached yet', calling: 'in progress',
    given_up: 'unreachable; retried at next start',
};
// A client that came after our start already knows our state.
function toldWords(news) {
    return news.state === 'told' && news.attempts === 0 ? 'not needed' : told[news.state];
}

const clientTags = {
    given_up: 'bad', crashed: 'bad', recovering: 'warn', freeing: 'warn', active: '',
    connected: '', disconnected: 'warn', expired: 'bad',
};

function isUnreached(client) {
    const news = client.notification;
    return news.state === 'given_up' ||
        ['waiting', 'calling'].includes(news.state) && news.attempts > 0;
}

function rank(client) {
    return client.crashed ? 0 : isUnreached(client) ? 1 : client.state === 'recovering' ? 2
        : client.state === 'freeing' ? 3 : client.waiters > 0 ? 4 : 5;
}
