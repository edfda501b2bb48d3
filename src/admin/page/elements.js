/*
 * elements.js -- descriptions of elements, and the document made to look like them.
 *
 * Data becomes text nodes and attribute values, never markup. Only what differs is touched, so that
 * focus and scroll position stay.
 */
const SVG = document.querySelector('svg').namespaceURI;
const svgTags = new Set(['svg', 'path', 'line']);

// Characters that are not seen but change what is: a name could pass for another with them.
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

// Describes an element. Strings and numbers among the children become text.
function h(tag, props, ...kids) {
    return {tag, props: props || {}, kids: kids.flat(Infinity)
        .filter(kid => kid !== null && kid !== undefined && kid !== false)
        .map(kid => typeof kid === 'object' ? kid : String(kid).replace(unseen, '\ufffd'))};
}

function onAny(event) {
    const handler = event.currentTarget.holdfast.on[event.type];
    if (handler)
        handler(event);
}

function update(node, wanted) {
    const old = node.holdfast.props, props = wanted.props;
    for (const name of Object.keys(old))
        if (!(name in props) && name !== 'on' && name !== 'style' && name !== 'key')
            node.removeAttribute(name);
    for (const [name, value] of Object.entries(props)) {
        if (name === 'key') {
            continue;
        } else if (name === 'on') {
            for (const type of Object.keys(value))
                if (!(type in node.holdfast.on))
                    node.addEventListener(type, onAny);
            node.holdfast.on = {...node.holdfast.on, ...value};
        } else if (name === 'style') {
            for (const [property, text] of Object.entries(value))
                if (!old.style || old.style[property] !== text)
                    node.style.setProperty(property, text);
        } else if (name === 'value') {
            if (node.value !== value && document.activeElement !== node)
                node.value = value;
        } else if (value === false || value === null || value === undefined) {
            node.removeAttribute(name);
        } else if (old[name] !== value) {
            node.setAttribute(name, value === true ? '' : value);
        }
    }
    node.holdfast.props = props;
    patchKids(node, wanted.kids);
}

function create(wanted) {
    const node = svgTags.has(wanted.tag) ? document.createElementNS(SVG, wanted.tag)
                                         : document.createElement(wanted.tag);
    node.holdfast = {tag: wanted.tag, key: wanted.props.key, props: {}, on: {}};
    return node;
}

function patchKids(parent, kids) {
    const byKey = new Map();
    for (const node of parent.childNodes)
        if (node.holdfast && node.holdfast.key !== undefined)
            byKey.set(node.holdfast.key, node);
    let at = parent.firstChild;
    for (const kid of kids) {
        let node;
        if (typeof kid === 'string') {
            node = at && at.nodeType === Node.TEXT_NODE ? at : document.createTextNode(kid);
            if (node.nodeValue !== kid)
                node.nodeValue = kid;
        } else {
            const key = kid.props.key;
            const known = key === undefined ? at : byKey.get(key);
            const fits = known && known.holdfast && known.holdfast.tag === kid.tag &&
                known.holdfast.key === key;
            node = fits ? known : create(kid);
            byKey.delete(key);
            update(node, kid);
        }
        if (node === at)
            at = at.nextSibling;
        else
            parent.insertBefore(node, at);
    }
    while (at) {
        const next = at.nextSibling;
        at.remove();
        at = next;
    }
}

function patch(id, ...kids) {
    patchKids(document.getElementById(id), h('div', null, kids).kids);
}
